package desired_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestAGatewayForCephReceivesEveryCephPoolBeforeItHasAVolumeThere(t *testing.T) {
	o := desiredtest.Cluster()
	o.Put(&model.StoragePool{Meta: model.Meta{Name: "ceph", UID: "ceph-uid"}, Spec: model.StoragePoolSpec{WarnPercent: 80,
		RBD: &model.RBDPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Pool: "rbd"}},
		Status: model.StoragePoolStatus{CapacityBytes: 1000, UsedBytes: 900}})
	for _, able := range []bool{true, false} {
		state, _ := desired.Build(o, o.Gateways["gw-3"], desired.Process{Incarnation: "i", RBD: able}, desired.Settings{}, desired.Cache{})
		pool := state[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_POOL, ID: "ceph-uid"}]
		if included := pool != nil; included != able {
			t.Errorf("able is %v: included is %v", able, included)
		}
		if able && pool.GetPool().GetIdentity() == nil {
			t.Error("the gateway is not to compare the pool's marker")
		}
		if able && (!pool.GetPool().GetNearlyFull() || pool.GetPool().GetRbd().GetPool() != "rbd") {
			t.Errorf("%+v", pool)
		}
	}
}

func TestAnOrderNamesTheClientsThatWereFencedForIt(t *testing.T) {
	o := desiredtest.Cluster()
	o.Put(desiredtest.Volume(model.Ownership{State: model.Opening, Epoch: 5, Order: 12, Owner: desiredtest.Ref(2), FencedClients: "a b"}))
	if got := volumeIn(t, of(o, "gw-2")).GetFencedClients(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v", got)
	}
}
