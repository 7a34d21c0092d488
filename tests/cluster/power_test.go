package cluster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// newestEpoch returns the newest epoch in the files that match a pattern; 0: none.
func newestEpoch(t *testing.T, pattern string) uint64 {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	newest := uint64(0)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^epoch (\d+)$`).FindAllSubmatch(text, -1) {
			epoch, err := strconv.ParseUint(string(found[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			newest = max(newest, epoch)
		}
	}
	return newest
}

// DESIGN R2: the epoch is synced beside the data before the volume is served in it, so that no older order is obeyed afterwards.
// The node loses power when the first write has been answered. The test then reads what the file system's journal recovers from
// the disk.
func TestTheEpochThatAnOwnerServedInIsOnDiskWhenItsNodeLosesPower(t *testing.T) {
	pool := xfs(t)
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1, Pool: pool.Directory})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Twice, so that each of the two slots for claims (gateway/src/control/local/claim_slots.h) is overwritten.
	var served uint64
	for _, next := range []int{1 - owner, owner} {
		if err := c.Bring(ctx, 0, next); err != nil {
			t.Fatal(err)
		}
		if served, err = c.Owned(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	session, err := c.Login(ctx, 1, owner)
	if err != nil {
		t.Fatal(err)
	}
	writes(ctx, t, session, 0, 7)
	if err := pool.CutPower(); err != nil {
		t.Fatal(err)
	}
	session.Close()
	// All of them, because each process sees the mount in its own namespace.
	for _, process := range c.Processes() {
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := pool.PowerOn(); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(pool.Directory, ".sluice")
	if found := newestEpoch(t, filepath.Join(records, "*.holder")); found < served {
		t.Errorf("epoch %d was served in, and the newest claim on disk is of epoch %d", served, found)
	}
	if found := newestEpoch(t, filepath.Join(records, "*.volume")); found >= served {
		t.Errorf("epoch %d is in the record, not beside it (%d): nothing was proven of claims", served, found)
	}
	for _, process := range c.Processes() {
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
	}
	var found []byte
	if err := netns.Until(ctx, func() error {
		again, err := c.Login(ctx, 1, owner)
		if err != nil {
			return err
		}
		defer again.Close()
		found, err = again.Good(ctx, initiator.Read(0, 0, 1, sectorSize))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if found[0] != 7 {
		t.Errorf("an acknowledged write is gone: %d", found[0])
	}
}
