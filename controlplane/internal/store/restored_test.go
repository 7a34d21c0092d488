package store_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func TestARestoredStoreGoesOnAboveAllEpochsAndOrdersInEachSystem(t *testing.T) {
	for name, c := range map[string]struct{ now time.Time }{
		"revisions went on":  {time.UnixMilli(0)},
		"revisions are less": {time.UnixMilli(1_800_000_000_000)},
	} {
		t.Run(name, func(t *testing.T) {
			both := []*fixture{open(t), open(t)}
			for _, f := range both {
				f.house()
				for i := range 3 {
					name := fmt.Sprint("vol-", i)
					must(f, f.Volumes, volume(name))
					if _, err := f.Own(t.Context(), name, assign(ref(1))); err != nil {
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
				is := before.Status.Ownership
				if is.Owner != ref(1) || is.Epoch != 1 || is.State != model.Opening {
					t.Fatalf("the owner was changed: %+v", is)
				}
				after, err := f.Own(t.Context(), "vol-1", func(v *model.Volume) (model.Ownership, error) {
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
