package decide_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// struck are volumes of gateway 1 that gateway 2 of its node can take.
type struck struct {
	t    *testing.T
	view *decide.LeaderView
	now  time.Time
}

func (s *struck) name(i int) string { return fmt.Sprintf("v-%04d", i) }

// ownedByOne returns this number of volumes owned by gateway 1.
func ownedByOne(t *testing.T, count int) *struck {
	s := &struck{t: t, view: known(2), now: start}
	s.view.Put(&model.StoragePool{Meta: model.Meta{Name: "pool", UID: "p", Version: 1},
		Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}})
	g := *s.view.Gateways["gw-2"]
	g.Spec.Node, g.Meta.Version = "node-1", 2
	s.view.Put(&g)
	target := &model.Target{Meta: model.Meta{Name: "t", UID: "t", Version: 1}, Spec: model.TargetSpec{Paths: 2},
		Status: model.TargetStatus{PathSet: []uint32{1, 2}}}
	for i := range count {
		target.Spec.Luns = append(target.Spec.Luns, model.TargetLun{ID: int32(i), Volume: s.name(i)})
		s.store(i, model.Ownership{State: model.Owned, Epoch: 1, Owner: ref(1), Order: 1})
	}
	s.view.Put(target)
	return s
}

func (s *struck) store(i int, ownership model.Ownership) {
	version := int64(1)
	if known := s.view.Volumes[s.name(i)]; known != nil {
		version = known.Meta.Version + 1
	}
	s.view.Put(&model.Volume{Meta: model.Meta{Name: s.name(i), UID: s.name(i), Version: version},
		Spec:   model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20},
		Status: model.VolumeStatus{CapacityBytes: 1 << 20, Ownership: ownership}})
}

// loses reconnects gateway 1 as another process, so that the owning process is gone.
func (s *struck) loses() {
	connected(s.view, 1, "j")
	ends(s.view, 1, s.now)
	g := *s.view.Gateways["gw-1"]
	g.Status.Health, g.Meta.Version = model.GatewayDead, 3
	s.view.Put(&g)
}

// sets decides on a volume. It reports whether the volume gets its next owner, and stores that; else it returns the wait.
func (s *struck) sets(i int) (bool, time.Duration) {
	s.t.Helper()
	decision := s.view.DecideVolume(s.name(i), s.now)
	for _, a := range decision.Actions {
		if as[*decide.ChangeOwner](a) == nil {
			continue
		}
		volume := *s.view.Volumes[s.name(i)]
		ownership, err := as[*decide.ChangeOwner](a).Owning(&volume)
		if err != nil || ownership.State != model.Acquiring {
			s.t.Fatalf("volume %d: %+v, %v", i, ownership, err)
		}
		s.store(i, ownership)
		return true, 0
	}
	return false, decision.Wait
}

// used reads or writes a volume.
func (s *struck) used(i int) {
	for _, bytes := range []uint64{0, 512} {
		s.view.Observe(model.Observed{Version: 1, Load: &model.LoadReport{Gateway: ref(1), At: s.now,
			Volumes: []model.VolumeLoad{{UID: s.name(i), Commands: bytes, Bytes: bytes}}}}, s.now)
	}
}

func TestOfLostVolumesTheUnusedOnesWaitForThoseInUse(t *testing.T) {
	s := ownedByOne(t, 3)
	s.used(2)
	s.loses()
	if sets, _ := s.sets(2); !sets {
		t.Fatal("it is in use, and waits")
	}
	if sets, wait := s.sets(0); sets || wait != decide.TakeoverShare {
		t.Fatalf("no host uses it, and its takeover starts: %v, or waits for %s", sets, wait)
	}
	s.store(2, model.Ownership{State: model.Opening, Epoch: 2, Owner: ref(2), Order: 2})
	if sets, _ := s.sets(0); sets {
		t.Fatal("it does not wait until the one in use is served")
	}
	s.store(2, model.Ownership{State: model.Owned, Epoch: 2, Owner: ref(2), Order: 3})
	for i := range 2 {
		if sets, _ := s.sets(i); !sets {
			t.Errorf("volume %d waits, although no other takeover is ahead of it", i)
		}
	}
}

func TestTakeoversThatHangDelayOthersForTheirShareAndNoLonger(t *testing.T) {
	s := ownedByOne(t, 2)
	s.used(1)
	s.loses()
	s.sets(1)
	s.now = s.now.Add(decide.TakeoverShare - 1)
	if sets, wait := s.sets(0); sets || wait != 1 {
		t.Fatalf("it sets out: %v, or is looked at again after %s", sets, wait)
	}
	s.now = s.now.Add(1)
	if sets, _ := s.sets(0); !sets {
		t.Error("it waits for one that does not come")
	}
}

// In Ceph all volumes wait for one fence, and get their next owner when it is done.
func TestOfFencedVolumesTheUnusedOnesWaitForThoseInUse(t *testing.T) {
	v := fencing(2)
	other := &model.Volume{Meta: model.Meta{Name: "used", UID: "x", Version: 1},
		Spec:   model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20},
		Status: model.VolumeStatus{CapacityBytes: 1 << 20, Ownership: shut}}
	v.Put(other)
	target := *v.Targets["t"]
	target.Spec.Luns = append(slices.Clone(target.Spec.Luns), model.TargetLun{ID: 1, Volume: "used"})
	target.Meta.Version = 2
	v.Put(&target)
	v.Observe(model.Observed{Version: 1, Load: &model.LoadReport{Gateway: ref(2), At: start,
		Volumes: []model.VolumeLoad{{UID: "x", Commands: 1, Bytes: 512}}}}, start)
	recorded(v, ref(1), 2, fenced)
	if decision := v.DecideVolume("used", start); len(decision.Actions) == 0 || as[*decide.ChangeOwner](decision.Actions[0]) == nil {
		t.Fatalf("it is in use, and waits: %+v", decision)
	}
	if ownership, decision := next(t, v, start); ownership != shut || decision.Wait != decide.TakeoverShare {
		t.Fatalf("no host uses it: %+v, checked again after %s", ownership, decision.Wait)
	}
	if ownership, _ := next(t, v, start.Add(decide.TakeoverShare)); ownership.State != model.Opening || ownership.Owner != ref(2) {
		t.Errorf("it waits on: %+v", ownership)
	}
}
