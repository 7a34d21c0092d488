package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

// seen has the fields of an object that sluicectl prints.
type seen struct {
	Meta   struct{ Name, UID string }
	Status struct {
		Conditions []struct{ Type, Status, Reason, Message string }
	}
}

func (s seen) condition(kind string) (status, reason, message string) {
	for _, c := range s.Status.Conditions {
		if c.Type == kind {
			return c.Status, c.Reason, c.Message
		}
	}
	return "", "", ""
}

func show(ctx context.Context, c *cluster.Cluster, kind, name string) (seen, error) {
	text, err := c.Control(ctx, kind, "get", name, "-o", "json")
	if err != nil {
		return seen{}, err
	}
	var found seen
	return found, errors.Join(err, json.Unmarshal([]byte(text), &found))
}

// waitFor waits until a condition of an object has a status (the end of its name) and a reason, and returns the message.
func waitFor(ctx context.Context, t *testing.T, c *cluster.Cluster, kind, name, condition, status, reason string) string {
	t.Helper()
	var message, last string
	if err := netns.Until(ctx, func() error {
		found, err := show(ctx, c, kind, name)
		if err != nil {
			return err
		}
		state, why, text := found.condition(condition)
		if message = text; !strings.HasSuffix(state, status) || why != reason {
			last = fmt.Sprintf("%s %s: %s is %s (%s: %s), not %s (%s)", kind, name, condition, state, why, text, status, reason)
			return errors.New(last)
		}
		return nil
	}); err != nil {
		t.Fatalf("%s; %v", last, err)
	}
	return message
}

func control(ctx context.Context, t *testing.T, c *cluster.Cluster, words string) {
	t.Helper()
	if _, err := c.Control(ctx, strings.Fields(words)...); err != nil {
		t.Fatalf("sluicectl %s: %v", words, err)
	}
}

// restart stops all gateways, calls meanwhile, and starts them again.
func restart(t *testing.T, c *cluster.Cluster, meanwhile func() error) {
	t.Helper()
	for _, g := range c.Gateways {
		if err := g.Stop(20 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := meanwhile(); err != nil {
		t.Fatal(err)
	}
	for _, g := range c.Gateways {
		if err := g.Start(); err != nil {
			t.Fatal(err)
		}
	}
}

func imageOf(ctx context.Context, t *testing.T, c *cluster.Cluster, volume string) string {
	t.Helper()
	found, err := show(ctx, c, "volume", volume)
	if err != nil || found.Meta.UID == "" {
		t.Fatalf("volume %s: %+v, %v", volume, found, err)
	}
	return "volume-" + found.Meta.UID
}

// The pool's file system is not mounted when the gateways start. The directory at its path is not the pool: nothing is created or
// deleted in it. The pool becomes Ready once the file system is mounted, and waiting operations are then done.
func TestAPoolWhoseMountIsMissingIsNotReadyAndNothingIsCreatedOrDeletedInIt(t *testing.T) {
	if err := netns.ShareMounts(); err != nil {
		t.Fatal(err)
	}
	disk := xfs(t)
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1, Pool: disk.Directory})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	old := cluster.VolumeName(0)
	image := imageOf(ctx, t, c, old)
	control(ctx, t, c, "target delete cluster --yes --wait")
	restart(t, c, disk.Unmount)
	mounted := false
	t.Cleanup(func() {
		if !mounted {
			_ = disk.Mount() // for the Unmount at the end
		}
	})
	message := waitFor(ctx, t, c, "pool", cluster.PoolName, "Ready", "FALSE", "PoolNotIdentified")
	for _, words := range []string{disk.Directory, "Mount the pool's storage", "sluicectl pool adopt"} {
		if !strings.Contains(message, words) {
			t.Errorf("the pool's condition does not say %q: %s", words, message)
		}
	}
	control(ctx, t, c, "volume create late --pool "+cluster.PoolName+" --size 16Mi")
	control(ctx, t, c, "volume delete "+old)
	waitFor(ctx, t, c, "volume", "late", "Ready", "FALSE", "PoolNotIdentified")
	waitFor(ctx, t, c, "volume", old, "Progressing", "TRUE", "PoolNotIdentified")
	if entries, err := os.ReadDir(disk.Directory); err != nil || len(entries) != 0 {
		t.Errorf("something was written below the mount point: %v %v", entries, err)
	}
	if err := disk.Mount(); err != nil {
		t.Fatal(err)
	}
	mounted = true
	if _, err := os.Stat(filepath.Join(disk.Directory, image)); err != nil {
		t.Errorf("the image of the volume that is to be deleted: %v", err)
	}
	waitFor(ctx, t, c, "pool", cluster.PoolName, "Ready", "TRUE", "Reachable")
	waitFor(ctx, t, c, "volume", "late", "Ready", "TRUE", "Ready")
	if _, err := os.Stat(filepath.Join(disk.Directory, imageOf(ctx, t, c, "late"))); err != nil {
		t.Error(err)
	}
	if err := netns.Until(ctx, func() error {
		if _, err := os.Stat(filepath.Join(disk.Directory, image)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the deleted volume's image is there: %w", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// An image that was replaced by an empty file of the same name and size is not served, nor is one that lost its end. The volume's
// condition names the problem. The original image is served again.
func TestAReplacedOrTruncatedImageIsRefusedAndTheVolumeSaysWhy(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	writes(ctx, t, login(ctx, t, c, 1, owner), 0, 'a')
	name := cluster.VolumeName(0)
	path := filepath.Join(c.Directory, "pool", imageOf(ctx, t, c, name))
	refused := func(words string) {
		t.Helper()
		message := waitFor(ctx, t, c, "volume", name, "Ready", "FALSE", "OpenFailed")
		if !strings.Contains(message, words) {
			t.Errorf("the volume's condition does not say %q: %s", words, message)
		}
	}
	restart(t, c, func() error {
		if err := os.Rename(path, path+".kept"); err != nil {
			return err
		}
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 16<<20))
	})
	refused("another file than the volume's image")
	if err := os.Rename(path+".kept", path); err != nil {
		t.Fatal(err)
	}
	waitFor(ctx, t, c, "volume", name, "Ready", "TRUE", "Ready")
	restart(t, c, func() error { return os.Truncate(path, 1<<20) })
	refused("is 1MiB, recorded are 16MiB")
	if status, err := os.Stat(path); err != nil || status.Size() != 1<<20 {
		t.Errorf("the image was changed: %v %v", status, err)
	}
}

// The image is replaced, deleted or truncated while a host uses it. The control plane reports it without a move or a restart.
func TestAnImageThatChangesWhileItIsServedIsReported(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 2, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	path := func(volume int) string {
		return filepath.Join(c.Directory, "pool", imageOf(ctx, t, c, cluster.VolumeName(volume)))
	}
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	misplaced, first := cluster.VolumeName(0), path(0)
	rename(first, first+".kept")
	waitFor(ctx, t, c, "volume", misplaced, "Degraded", "TRUE", "MediumMisplaced")
	if err := os.WriteFile(first, make([]byte, 16<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	writes(ctx, t, login(ctx, t, c, 1, owner), 0, 'a') // the file in use is the volume's
	rename(first+".kept", first)
	waitFor(ctx, t, c, "volume", misplaced, "Degraded", "FALSE", "Healthy")

	failed := cluster.VolumeName(1)
	if err := os.Truncate(path(1), 1<<20); err != nil {
		t.Fatal(err)
	}
	message := waitFor(ctx, t, c, "volume", failed, "Ready", "FALSE", "MediumFailed")
	if !strings.Contains(message, "cut short") {
		t.Errorf("the message does not name the cause: %s", message)
	}
}

// A pool that was copied to other files has volumes that no gateway serves until an administrator confirms the copy.
func TestACopiedPoolIsServedOnceItWasAdopted(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	writes(ctx, t, login(ctx, t, c, 1, owner), 0, 'a')
	pool, name := filepath.Join(c.Directory, "pool"), cluster.VolumeName(0)
	restart(t, c, func() error {
		if err := os.Rename(pool, pool+".former"); err != nil {
			return err
		}
		return os.CopyFS(pool, os.DirFS(pool+".former"))
	})
	waitFor(ctx, t, c, "volume", name, "Ready", "FALSE", "OpenFailed")
	control(ctx, t, c, "pool adopt "+cluster.PoolName+" --wait")
	waitFor(ctx, t, c, "volume", name, "Ready", "TRUE", "Ready")
	owner, err = c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := reads(ctx, t, login(ctx, t, c, 2, owner), 0); found != 'a' {
		t.Errorf("it holds %q", found)
	}
}

// Each file of a volume's record may be damaged: the volume moves, and its next owner restores the record.
func TestAVolumeMovesThoughAByteOfItsRecordIsDamaged(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	name := cluster.VolumeName(0)
	uid := strings.TrimPrefix(imageOf(ctx, t, c, name), "volume-")
	record := filepath.Join(c.Directory, "pool", ".sluice", uid+".volume")
	content, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(record, content, 0o600); err != nil {
		t.Fatal(err)
	}
	control(ctx, t, c, "volume move "+name+" --wait")
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	writes(ctx, t, login(ctx, t, c, 1, owner), 0, 'b')
	mended, err := os.ReadFile(record)
	if err != nil || string(mended) == string(content) {
		t.Errorf("the record is as damaged as before: %v", err)
	}
}
