package store_test

import (
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

// held creates a volume whose pending operations are held, as after a restore.
func held(f *fixture, name string, change func(*model.Volume)) {
	f.t.Helper()
	must(f, f.Volumes, volume(name))
	if _, err := storetest.Modify(f.t.Context(), f.term(), name, func(v *model.Volume) (bool, error) {
		v.Status.CapacityBytes = v.Spec.SizeBytes
		change(v)
		return true, nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

func TestHeldOperationsThatAreDiscardedAreForgotten(t *testing.T) {
	f := open(t)
	f.prerequisites()
	hold := func(v *model.Volume) { v.Hold(f.clock.now(), nil) }
	held(f, "rolled", func(v *model.Volume) { v.Status.RollBack = &model.RollBackRequest{Snapshot: "s"}; hold(v) })
	held(f, "grown", func(v *model.Volume) { v.Spec.SizeBytes *= 2; hold(v) })
	held(f, "moved", func(v *model.Volume) { v.Status.MoveRequest = &model.MoveRequest{Gateway: 1}; hold(v) })
	held(f, "deleted", func(*model.Volume) {})
	if _, err := f.Volumes.Delete(t.Context(), "deleted", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.Modify(t.Context(), f.term(), "deleted", func(v *model.Volume) (bool, error) { hold(v); return true, nil }); err != nil {
		t.Fatal(err)
	}
	if all, err := f.Held(t.Context()); err != nil || len(all) != 4 {
		t.Fatalf("held: %v, %v", all, err)
	}
	for _, name := range []string{"rolled", "grown", "moved", "deleted"} {
		if err := f.DiscardHeld(t.Context(), model.KindVolume, name); err != nil {
			t.Fatal(err)
		}
		v, err := f.Volumes.Get(t.Context(), name)
		if err != nil || len(v.Pending(nil)) > 0 || len(v.Status.Held) > 0 || v.Spec.SizeBytes != v.Status.CapacityBytes {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		wantError[*model.PreconditionError](t, f.DiscardHeld(t.Context(), model.KindVolume, name), "nothing waits")
	}
	// A volume that is not deleted any more can be exported again.
	must(f, f.Targets, &model.Target{Meta: model.Meta{Name: "t"}, Spec: model.TargetSpec{GatewayPool: "default", Paths: 2,
		IQN: "iqn.2026-11.dev.sluice:t", Luns: []model.TargetLun{{ID: 1, Volume: "deleted"}}}})
	wantError[*store.NotFoundError](t, f.DiscardHeld(t.Context(), model.KindSnapshot, "none"), "none")
}

// Its content may have been copied, and written to, after the backup.
func TestTheContentOfAVolumeCannotBeDiscarded(t *testing.T) {
	f := open(t)
	f.prerequisites()
	held(f, "copy", func(v *model.Volume) {
		v.Spec.Source, v.Status.CapacityBytes = model.VolumeSource{Volume: "origin"}, 0
		v.Hold(f.clock.now(), nil)
	})
	wantError[*model.PreconditionError](t, f.DiscardHeld(t.Context(), model.KindVolume, "copy"), "copy of volume origin", "confirm it")
}

func TestADeletedSnapshotWhoseDeletionIsDiscardedStays(t *testing.T) {
	f := withSnapshot(t)
	if _, err := f.Snapshots.Delete(t.Context(), "s", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.Modify(t.Context(), f.term(), "s", func(s *model.Snapshot) (bool, error) { return s.Hold(f.clock.now(), nil), nil }); err != nil {
		t.Fatal(err)
	}
	if err := f.DiscardHeld(t.Context(), model.KindSnapshot, "s"); err != nil {
		t.Fatal(err)
	}
	if s, err := f.Snapshots.Get(t.Context(), "s"); err != nil || s.Meta.Deleting() || len(s.Status.Held) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
