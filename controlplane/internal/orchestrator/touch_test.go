package orchestrator

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

func inState(name string, version int64, state model.OwnershipState) *model.Volume {
	return &model.Volume{Meta: model.Meta{Name: name, UID: name, Version: version}, Status: model.VolumeStatus{CapacityBytes: 1,
		Ownership: model.Ownership{State: state, Owner: model.GatewayRef{Number: 1, Incarnation: "a"}}}}
}

func TestAVolumeThatChangesTouchesWhatIsMadeOfItAndNothingElse(t *testing.T) {
	v := NewView(1, time.Now())
	source, copied := inState("source", 1, model.Owned), inState("copy", 1, model.Unowned)
	copied.Spec.Source.Volume, copied.Status.CapacityBytes = "source", 0
	snapshot := &model.Snapshot{Meta: model.Meta{Name: "s", UID: "s", Version: 1}, Spec: model.SnapshotSpec{Volume: "source"}}
	for _, o := range []model.Object{source, copied, inState("other", 1, model.Owned), snapshot} {
		v.Put(o)
	}
	touched := func() []Key { return v.touchedBy(source, inState("source", 2, model.Acquiring)) }
	aCopy, aSnapshot := Key{model.KindVolume, "copy"}, Key{model.KindSnapshot, "s"}
	if all := touched(); len(all) != 3 || !slices.Contains(all, aCopy) || !slices.Contains(all, aSnapshot) {
		t.Errorf("%v", all)
	}
	made := *copied
	made.Meta.Version, made.Status.CapacityBytes = 2, 1
	v.Put(&made)
	if all := touched(); slices.Contains(all, aCopy) {
		t.Errorf("it is made, and waits for nothing: %v", all)
	}
	v.Delete(snapshot, 2)
	if all := touched(); len(all) != 1 {
		t.Errorf("the snapshot is gone: %v", all)
	}
	v.Put(snapshot)
	v.ResetKind(model.KindSnapshot)
	if all := touched(); len(all) != 1 {
		t.Errorf("all snapshots are forgotten: %v", all)
	}
}

func TestWhatIsOnlyToldOfATargetDoesNotTouchItsVolumes(t *testing.T) {
	v := NewView(1, time.Now())
	was := &model.Target{Meta: model.Meta{Name: "t", UID: "t", Generation: 1, Version: 1},
		Spec:   model.TargetSpec{Luns: []model.TargetLun{{Volume: "a"}, {Volume: "b"}}},
		Status: model.TargetStatus{PathSet: []uint32{1, 2}, PathGeneration: 1}}
	told, moved, gone, other := *was, *was, *was, *was
	told.Status.Applied = map[uint32]string{1: "1.1"}
	moved.Status.PathSet, moved.Status.PathGeneration = []uint32{2, 3}, 2
	gone.Meta.DeleteTime = &time.Time{}
	other.Meta.Generation = 2
	for what, c := range map[string]struct {
		before, after model.Object
		touched       int
	}{
		"a report":         {was, &told, 1},
		"another path set": {was, &moved, 5},
		"a deletion":       {was, &gone, 5},
		"another spec":     {was, &other, 5},
		"a new one":        {nil, was, 3},
	} {
		if touched := v.touchedBy(c.before, c.after); len(touched) != c.touched {
			t.Errorf("%s touches %v", what, touched)
		}
	}
}

func TestWhatIsKnownAlreadyIsNoNews(t *testing.T) {
	v := NewView(1, time.Now())
	if !v.Put(inState("v", 2, model.Owned)) || v.Put(inState("v", 2, model.Owned)) || v.Put(inState("v", 1, model.Owned)) ||
		!v.Put(inState("v", 3, model.Owned)) {
		t.Error("what a watch tells again is decided on again, or a newer one is not")
	}
}
