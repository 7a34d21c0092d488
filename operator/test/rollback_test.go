package test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/netns"
)

// reflinked mounts a file system that supports snapshots.
func reflinked(t *testing.T) string {
	t.Helper()
	made, err := netns.XFS(t.TempDir())
	if err != nil {
		t.Skipf("no XFS here: %v", err)
	}
	t.Cleanup(func() { // gateways may have it open for a moment longer
		if err := until(made.Unmount); err != nil {
			t.Error(err)
		}
	})
	return made.Directory
}

// disk returns the file of a volume in a pool's directory.
func disk(t *testing.T, directory, uid string) string {
	t.Helper()
	found := ""
	eventually(t, func() error {
		_ = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == "volume-"+uid {
				found = path
			}
			return nil
		})
		if found == "" {
			return fmt.Errorf("no file of volume %s in %s", uid, directory)
		}
		return nil
	})
	return found
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(err)
	_, err = file.WriteAt([]byte(content), 0)
	must(err)
	must(file.Close())
}

func begins(t *testing.T, path string, length int) string {
	t.Helper()
	file, err := os.Open(path)
	must(err)
	defer func() { _ = file.Close() }()
	held := make([]byte, length)
	_, err = file.ReadAt(held, 0)
	must(err)
	return string(held)
}

// owned waits until a volume has a state of ownership, and returns its epoch.
func owned(t *testing.T, name string, state pb.OwnershipState) string {
	t.Helper()
	epoch := ""
	eventually(t, func() error {
		status := stored(t, name).GetStatus()
		if status.GetOwnership() != state {
			return fmt.Errorf("%s is %s", name, status.GetOwnership())
		}
		epoch = strconv.FormatUint(status.GetEpoch(), 10)
		return nil
	})
	return epoch
}

func TestAVolumeIsRolledBackWhenItsSnapshotSaysWhichContentMayGoAndNotAgain(t *testing.T) {
	directory := reflinked(t)
	serving(t, 1, "back", ", replicas: 1")
	create(t, read(t, &v1alpha1.StoragePool{}, "metadata: {name: back}\nspec: {local: {node: n1, directory: "+directory+"}}"))
	r := volume(t, "back", `{pool: back, size: 16Mi}`)
	create(t, r)
	ready(t, r, metav1.ConditionTrue, "", "")
	file := disk(t, directory, stored(t, "shop.back").GetMeta().GetUid())
	overwrite(t, file, "before")
	snapshot := read(t, &v1alpha1.Snapshot{}, "metadata: {namespace: shop, name: back}\nspec: {volume: back}")
	create(t, snapshot)
	ready(t, snapshot, metav1.ConditionTrue, "", "")
	overwrite(t, file, "after ")

	annotate := func(epoch string) {
		t.Helper()
		must(change(t, snapshot, func(s *v1alpha1.Snapshot) {
			s.Annotations = map[string]string{v1alpha1.AnnotationRollBack: epoch}
		}))
	}
	says := func(status metav1.ConditionStatus, reason, text string) {
		t.Helper()
		shows(t, snapshot, v1alpha1.ConditionRolledBack, status, reason, text)
	}
	export := func() (*v1alpha1.Target, string) {
		t.Helper()
		target := read(t, &v1alpha1.Target{}, `
metadata: {namespace: shop, name: back}
spec: {gatewayPool: back, paths: 1, luns: [{id: 0, volume: back}]}`)
		must(env.client.Create(t.Context(), target))
		t.Cleanup(func() { remove(t, target) })
		return target, owned(t, "shop.back", pb.OwnershipState_OWNERSHIP_STATE_OWNED)
	}

	annotate("77")
	says(metav1.ConditionFalse, "OtherEpoch", `not "77": hosts may have written since`)
	target, epoch := export()
	annotate(epoch)
	says(metav1.ConditionFalse, "NotPossibleNow", "volume shop.back is mapped by")
	if held := begins(t, file, 6); held != "after " {
		t.Errorf("rolled back under its hosts: %q", held)
	}
	remove(t, target)
	says(metav1.ConditionTrue, "RolledBack", "it is what it was at snapshot shop.back")
	if held := begins(t, file, 6); held != "before" {
		t.Errorf("it holds %q", held)
	}

	overwrite(t, file, "newest")
	must(change(t, snapshot, func(s *v1alpha1.Snapshot) { s.Annotations = nil }))
	eventually(t, func() error {
		if err := env.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "back"}, snapshot); err != nil {
			return err
		}
		if snapshot.Status.RolledBackAtEpoch != "" {
			return fmt.Errorf("still remembered: %+v", snapshot.Status)
		}
		return nil
	})
	target, _ = export()
	remove(t, target)
	owned(t, "shop.back", pb.OwnershipState_OWNERSHIP_STATE_UNOWNED)
	annotate(epoch) // as if a manifest were applied once more
	says(metav1.ConditionFalse, "OtherEpoch", "hosts may have written since")
	if held := begins(t, file, 6); held != "newest" {
		t.Errorf("an annotation applied again has rolled back newer content: %q", held)
	}
}
