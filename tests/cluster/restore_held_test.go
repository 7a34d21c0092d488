package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

// The backup is taken while the deletion of volumes waits for a gateway, and restored before a gateway is connected.
func TestADeletionThatWasPendingInABackupWaitsUntilItIsConfirmedOrDiscarded(t *testing.T) {
	pool := t.TempDir()
	c, ctx := start(t, cluster.Options{Gateways: 1, Volumes: 1, Replicas: 1, Pool: pool})
	control := func(words ...string) string {
		t.Helper()
		out, err := c.Control(ctx, words...)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	control("volume", "create", "spare", "--pool", cluster.PoolName, "--size", "1Mi", "--wait")
	control("volume", "create", "wanted", "--pool", cluster.PoolName, "--size", "1Mi", "--wait")
	images := func() int {
		all, err := filepath.Glob(filepath.Join(pool, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := images()
	if err := c.Gateways[0].Kill(); err != nil {
		t.Fatal(err)
	}
	control("volume", "delete", "spare")
	control("volume", "delete", "wanted")
	backup := filepath.Join(t.TempDir(), "backup")
	control("backup", backup)
	replica := c.Replicas[0]
	if err := replica.Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	data := replica.Arguments[slices.Index(replica.Arguments, "--data-dir")+1]
	if err := errors.Join(os.RemoveAll(filepath.Join(data, "etcd")), c.Restore(ctx, backup, data), replica.Start()); err != nil {
		t.Fatal(err)
	}
	if err := c.Gateways[0].Start(); err != nil {
		t.Fatal(err)
	}
	session := logsIn(ctx, t, c, 0)
	reads(ctx, t, session, 0) // the gateway is connected, and executes jobs
	control("volume", "create", "after", "--pool", cluster.PoolName, "--size", "1Mi", "--wait")
	if held := control("restore", "list"); !strings.Contains(held, "spare") || !strings.Contains(held, "deletion") {
		t.Errorf("held: %s", held)
	}
	if got := control("volume", "get", "spare", "-o", "json"); !strings.Contains(got, "HeldAfterRestore") || images() <= before {
		t.Errorf("it was carried out: %d files, before %d; %s", images(), before, got)
	}
	control("restore", "discard", "volume", "wanted")
	control("restore", "confirm", "volume", "spare")
	if err := netns.Until(ctx, func() error {
		if out, err := c.Control(ctx, "volume", "get", "spare"); err == nil {
			return errors.New("it is still there: " + string(out))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	// The image of the other volume still exists: a target can map it, and a gateway serves it.
	control("target", "create", "wanted", "--lun", "0=wanted", "--paths", "1", "--wait")
	if held := control("restore", "list"); strings.Contains(held, "wanted") {
		t.Errorf("held: %s", held)
	}
}
