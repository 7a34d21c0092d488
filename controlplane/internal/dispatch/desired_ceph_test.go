package dispatch

import (
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestAGatewayThatCanOpenImagesIsToldOfEveryPoolInCephBeforeItHasAVolumeThere(t *testing.T) {
	o := cluster()
	o.Put(&model.StoragePool{Meta: model.Meta{Name: "ceph", UID: "ceph-uid"}, Spec: model.StoragePoolSpec{WarnPercent: 80,
		RBD: &model.RBDPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Pool: "rbd"}},
		Status: model.StoragePoolStatus{CapacityBytes: 1000, UsedBytes: 900}})
	for _, able := range []bool{true, false} {
		state, _ := desired(o, o.Gateways["gw-3"], process{incarnation: "i", rbd: able}, Settings{}, makings{})
		pool := state[objectKey{pb.ObjectKind_OBJECT_KIND_POOL, "ceph-uid"}]
		if told := pool != nil; told != able {
			t.Errorf("able %v: told %v", able, told)
		}
		if able && (!pool.GetPool().GetNearlyFull() || pool.GetPool().GetRbd().GetPool() != "rbd") {
			t.Errorf("%+v", pool)
		}
	}
}

func TestAnOrderNamesTheClientsThatWereFencedForIt(t *testing.T) {
	o := cluster()
	o.Put(volume(model.Ownership{State: model.Opening, Epoch: 5, Order: 12, Owner: ref(2), FencedClients: "a b"}))
	if got := of(o, "gw-2").volume(t).GetFencedClients(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v", got)
	}
}
