package decide

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

func TestAChangedVolumeTouchesItsDependentsOnly(t *testing.T) {
	v := NewLeaderView(1, time.Now())
	source, copied := inState("source", 1, model.Owned), inState("copy", 1, model.Unowned)
	copied.Spec.Source.Volume, copied.Status.CapacityBytes = "source", 0
	snapshot := &model.Snapshot{Meta: model.Meta{Name: "s", UID: "s", Version: 1}, Spec: model.SnapshotSpec{Volume: "source"}}
	for _, o := range []model.Object{source, copied, inState("other", 1, model.Owned), snapshot} {
		v.Put(o)
	}
	touched := func() []Key { return v.TouchedBy(source, inState("source", 2, model.Acquiring)) }
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
