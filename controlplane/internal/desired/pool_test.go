package desired_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestUntilItsMarkerIsKnownAPoolIsSentWithTheImagesThatItMustHave(t *testing.T) {
	o := desiredtest.Cluster()
	pool := &model.StoragePool{Meta: model.Meta{Name: "disk", UID: "disk-uid"}, Spec: model.StoragePoolSpec{WarnPercent: 80, Adoptions: 2,
		Local: &model.LocalPool{Node: o.Gateways["gw-1"].Spec.Node, Directory: "/srv/disk"}}}
	o.Put(pool)
	for name, capacity := range map[string]int64{"b": 1 << 20, "a": 1 << 20, "unmade": 0} {
		o.Put(&model.Volume{Meta: model.Meta{Name: name, UID: name}, Spec: model.VolumeSpec{Pool: "disk", SizeBytes: 1 << 20},
			Status: model.VolumeStatus{CapacityBytes: capacity}})
	}
	identity := func() *pb.PoolIdentity {
		state, _ := desired.Build(o, o.Gateways["gw-1"], desired.Process{Incarnation: "i"}, desired.Settings{}, desired.Cache{})
		return state[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_POOL, ID: "disk-uid"}].GetPool().GetIdentity()
	}
	if got := identity(); !slices.Equal(got.GetImages(), []string{"volume-a", "volume-b"}) || got.GetMarker() != "" ||
		got.GetConfirmedAdoptions() != 2 {
		t.Errorf("%v", got)
	}
	leaving := *o.Volumes["b"]
	leaving.Meta.DeleteTime = &time.Time{}
	o.Put(&leaving)
	if got := identity(); !slices.Contains(got.GetImages(), "volume-b") {
		t.Errorf("the image of a volume that is being deleted is not required: %v", got)
	}
	marked := *pool
	marked.Status.Marker, marked.Status.MarkerAdoptions = "m", 1
	o.Put(&marked)
	if got := identity(); len(got.GetImages()) != 0 || got.GetMarker() != "m" || got.GetAdoptions() != 1 {
		t.Errorf("%v", got)
	}
}
