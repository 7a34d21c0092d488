package desired_test

import (
	"testing"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestABurstThatIsNotGivenIsSentAsOneSecondsWorth(t *testing.T) {
	for _, c := range []struct {
		limits model.QoS
		want   *pb.DesiredQos
	}{
		{model.QoS{}, &pb.DesiredQos{}}, // unlimited
		{model.QoS{IOPS: 100, BytesPerSecond: 1 << 20},
			&pb.DesiredQos{Iops: 100, IopsBurst: 100, BytesPerSecond: 1 << 20, BytesBurst: 1 << 20}},
		{model.QoS{IOPS: 100, IOPSBurst: 7, BytesPerSecond: 1 << 20, BytesBurst: 5},
			&pb.DesiredQos{Iops: 100, IopsBurst: 7, BytesPerSecond: 1 << 20, BytesBurst: 5}},
	} {
		o := desiredtest.Cluster()
		limited := desiredtest.Volume(model.Ownership{State: model.Owned, Epoch: 3, Owner: desiredtest.Ref(1)})
		limited.Spec.QoS = c.limits
		o.Put(limited)
		if got := volumeIn(t, of(o, "gw-1")).GetQos(); got.String() != c.want.String() {
			t.Errorf("%+v: the owner receives %v, not %v", c.limits, got, c.want)
		}
	}
}

func TestAGatewayReceivesTheSessionLimitOfItsPool(t *testing.T) {
	limit := func(o interface{ Put(model.Object) }, sessions int32) {
		pool := &model.GatewayPool{Meta: model.Meta{Name: "default"}, Spec: model.GatewayPoolSpec{MaxSessionsPerGateway: sessions}}
		pool.SetDefaults()
		o.Put(pool)
	}
	o := desiredtest.Cluster()
	for given, want := range map[int32]uint32{0: 4096, 7: 7} {
		limit(o, given)
		settings := of(o, "gw-1")[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_SETTINGS, ID: ""}].GetSettings()
		if settings.GetMaxSessions() != want {
			t.Errorf("a limit of %d is sent as %d", given, settings.GetMaxSessions())
		}
	}
}
