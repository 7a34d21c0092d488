package store_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

func TestASizeThatThePoolsFileSystemCannotHoldIsRefusedAndARecordedOneCanBeTakenBackDown(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("v"))
	resize := func(bytes int64) error {
		v, err := f.Volumes.Get(t.Context(), "v")
		if err != nil {
			t.Fatal(err)
		}
		v.Spec.SizeBytes = bytes
		return f.Volumes.Update(t.Context(), v, false)
	}
	if err := resize(64 << 40); err != nil {
		t.Errorf("nothing is known of the file system: %v", err)
	}
	if _, err := storetest.Modify(t.Context(), f.term(), "v", func(v *model.Volume) (bool, error) {
		v.Status.CapacityBytes = 1 << 30
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.Modify(t.Context(), f.term(), "pool", func(p *model.StoragePool) (bool, error) {
		p.Status.MaxVolumeBytes = 16<<40 - 4096
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := resize(1<<30 - 512); err == nil || !strings.Contains(err.Error(), "less than the 1073741824 that hosts see") {
		t.Errorf("it loses data: %v", err)
	}
	if err := resize(1 << 30); err != nil {
		t.Errorf("a growth that was not done is taken back: %v", err)
	}
	large := volume("large")
	large.Spec.SizeBytes = 64 << 40
	for what, err := range map[string]error{"resize": resize(16 << 40), "create": f.Volumes.Create(t.Context(), large, false)} {
		if err == nil || !strings.Contains(err.Error(), "can store volumes of 17592186040320 bytes at most") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := resize(16<<40 - 4096); err != nil {
		t.Error(err)
	}
}
