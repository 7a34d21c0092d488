package store_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

// withSnapshot has a volume v and a ready snapshot s of it.
func withSnapshot(t *testing.T) *fixture {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("v"))
	must(f, f.Snapshots, &model.Snapshot{Meta: model.Meta{Name: "s"}, Spec: model.SnapshotSpec{Volume: "v"}})
	_, err := storetest.Modify(t.Context(), f.term(), "s", func(s *model.Snapshot) (bool, error) {
		s.Status.Ready = true
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rollBack(f *fixture) *model.RollBackRequest {
	f.t.Helper()
	v, err := f.Volumes.Get(f.t.Context(), "v")
	if err != nil {
		f.t.Fatal(err)
	}
	return v.Status.RollBack
}

func TestAVolumeIsRolledBackOnlyWhileItIsUnmappedAndHasNoOwner(t *testing.T) {
	f := withSnapshot(t)
	if _, err := f.RequestRollBack(t.Context(), "s", true); err != nil || rollBack(f) != nil {
		t.Fatalf("a dry run: %v, %+v", err, rollBack(f))
	}
	must(f, f.Targets, &model.Target{Meta: model.Meta{Name: "t"}, Spec: model.TargetSpec{GatewayPool: "default", Paths: 2,
		IQN: "iqn.2026-11.dev.sluice:t", Luns: []model.TargetLun{{ID: 1, Volume: "v"}}}})
	if _, err := f.RequestRollBack(t.Context(), "s", false); err == nil || !strings.Contains(err.Error(), "Target t") {
		t.Errorf("mapped: %v", err)
	}
	if _, err := f.term().Own(t.Context(), "v", assign(ref(1))); err != nil {
		t.Fatal(err)
	}
	target, err := f.Targets.Delete(t.Context(), "t", store.DeleteOptions{})
	if err == nil {
		err = f.term().Remove(t.Context(), target)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.RequestRollBack(t.Context(), "s", false); err == nil || !strings.Contains(err.Error(), "held by a gateway") {
		t.Errorf("owned: %v", err)
	}
}

func TestARollBackIsRememberedWithTheVolume(t *testing.T) {
	f := withSnapshot(t)
	snapshot, err := f.RequestRollBack(t.Context(), "s", false)
	if err != nil || rollBack(f) == nil || rollBack(f).Snapshot != snapshot.Meta.UID {
		t.Errorf("%v, %+v", err, rollBack(f))
	}
}

func TestOnlyAnRBDPoolHasImagesToAdoptAndATrash(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.StoragePools, &model.StoragePool{Meta: model.Meta{Name: "ceph"}, Spec: model.StoragePoolSpec{
		RBD: &model.RBDPool{Monitors: []string{"192.0.2.1:3300"}, User: "sluice", Key: model.NewSecret("a"), Pool: "rbd"}}})
	for field, change := range map[string]func(*model.VolumeSpec){
		"spec.source.image":  func(s *model.VolumeSpec) { s.Source.Image = "disk" },
		"spec.reclaimPolicy": func(s *model.VolumeSpec) { s.ReclaimPolicy = model.ReclaimTrash },
	} {
		wrong := volume("v")
		change(&wrong.Spec)
		if err := f.Volumes.Create(t.Context(), wrong, false); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("local, %s: %v", field, err)
		}
		right := volume("v" + field[len(field)-1:])
		change(&right.Spec)
		right.Spec.Pool = "ceph"
		must(f, f.Volumes, right)
	}
}
