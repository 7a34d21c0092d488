package store_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

// A restore has no key file and must work without one: a pool in Ceph has a key that is stored encrypted.
func TestARestoreLeavesTheKeysOfPoolsAsTheyAre(t *testing.T) {
	f := open(t)
	pool := &model.StoragePool{Meta: model.Meta{Name: "ceph"}, Spec: model.StoragePoolSpec{
		RBD: &model.RBDPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Key: model.NewSecret("k"), Pool: "rbd"}}}
	must(f, f.StoragePools, pool)
	if _, err := storetest.Modify(t.Context(), f.term(), "ceph", func(p *model.StoragePool) (bool, error) {
		p.Status.ImagesListed = f.clock.now()
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Restored(t.Context(), shared.Client, time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	after, err := f.StoragePools.Get(t.Context(), "ceph")
	if err != nil || after.Spec.RBD.Key.Reveal() != "k" || !after.Status.ImagesListed.IsZero() || after.Meta.UID != pool.Meta.UID {
		t.Errorf("after the restore: %+v, %v", after, err)
	}
}

func TestARestoredStoreGoesOnAboveAllEpochsAndOrdersInEachSystem(t *testing.T) {
	for name, c := range map[string]struct{ now time.Time }{
		"revisions went on":  {time.UnixMilli(0)},
		"revisions are less": {time.UnixMilli(1_800_000_000_000)},
	} {
		t.Run(name, func(t *testing.T) {
			both := []*fixture{open(t), open(t)}
			for _, f := range both {
				f.prerequisites()
				for i := range 3 {
					name := fmt.Sprint("vol-", i)
					must(f, f.Volumes, volume(name))
					if _, err := f.term().Own(t.Context(), name, assign(ref(1))); err != nil {
						t.Fatal(err)
					}
				}
			}
			revision, err := both[0].Revision(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if count, _, err := store.Restored(t.Context(), shared.Client, c.now, nil); err != nil || count < 6 {
				t.Fatalf("%d volumes, %v", count, err)
			}
			for _, f := range both {
				before, _ := f.Volumes.Get(t.Context(), "vol-1")
				ownership := before.Status.Ownership
				if ownership.Owner != ref(1) || ownership.Epoch != 1 || ownership.State != model.Opening {
					t.Fatalf("the owner was changed: %+v", ownership)
				}
				after, err := f.term().Own(t.Context(), "vol-1", func(v *model.Volume) (model.Ownership, error) {
					return v.Status.Ownership.Acquire(ref(2))
				})
				floor := max(uint64(revision), uint64(c.now.UnixMilli()))
				if err != nil || after.Status.Ownership.Epoch <= floor || after.Status.Ownership.Order <= floor {
					t.Fatalf("%+v, %v; wanted more than %d", after.Status.Ownership, err, floor)
				}
			}
		})
	}
}
