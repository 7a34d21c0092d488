package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// xfs returns a directory on a file system that shares blocks between files.
func xfs(t *testing.T) *netns.FileSystem {
	t.Helper()
	made, err := netns.XFS(t.TempDir())
	if err != nil {
		t.Skipf("no XFS here: %v", err)
	}
	t.Cleanup(func() {
		if err := made.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return made
}

const sectorSize = 512

func writes(ctx context.Context, t *testing.T, session *initiator.Session, lun uint16, content byte) {
	t.Helper()
	if _, err := session.Good(ctx, initiator.Write(lun, 0, bytes.Repeat([]byte{content}, 8*sectorSize), sectorSize)); err != nil {
		t.Fatal(err)
	}
}

// reads waits until a LUN exists, and returns its content.
func reads(ctx context.Context, t *testing.T, session *initiator.Session, lun uint16) byte {
	t.Helper()
	var data []byte
	if err := netns.Until(ctx, func() (err error) {
		data, err = session.Good(ctx, initiator.Read(lun, 0, 8, sectorSize))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimLeft(data, string(data[:1]))) != 0 {
		t.Fatalf("LUN %d holds a mixture: % x", lun, data)
	}
	return data[0]
}

// A snapshot of a volume in use, and a volume made from it, on a real file system with reflinks: each is unaffected by changes of
// the other.
func TestASnapshotHoldsWhatWasThereAndAVolumeMadeOfItLivesByItself(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1, Pool: xfs(t).Directory})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	control := func(words string) {
		t.Helper()
		if _, err := c.Control(ctx, strings.Fields(words)...); err != nil {
			t.Fatalf("sluicectl %s: %v", words, err)
		}
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	session := login(ctx, t, c, 1, owner)
	writes(ctx, t, session, 0, 'a')
	control("snapshot create before --volume " + cluster.VolumeName(0) + " --wait")
	writes(ctx, t, session, 0, 'b')

	objects := filepath.Join(c.Directory, "clone.yaml")
	text := fmt.Sprintf("apiVersion: sluice.dev/v1\nkind: Volume\nmeta: {name: copy}\nspec: {pool: pool, sizeBytes: 16777216, source: {snapshot: before}}\n---\n"+
		"apiVersion: sluice.dev/v1\nkind: Target\nmeta: {name: cluster}\nspec: {iqn: %q, gatewayPool: default, paths: 2, hosts: [host-1], "+
		"luns: [{id: 0, volume: %s}, {id: 7, volume: copy}]}\n", cluster.Target, cluster.VolumeName(0))
	if err := os.WriteFile(objects, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	control("apply -f " + objects)
	if found := reads(ctx, t, session, 7); found != 'a' {
		t.Errorf("the volume made of the snapshot holds %q", found)
	}
	if found := reads(ctx, t, session, 0); found != 'b' {
		t.Errorf("the volume itself holds %q", found)
	}
	writes(ctx, t, session, 7, 'c')
	control("snapshot create after --volume copy --wait")
	for lun, wanted := range map[uint16]byte{0: 'b', 7: 'c'} {
		if found := reads(ctx, t, session, lun); found != wanted {
			t.Errorf("LUN %d holds %q and not %q", lun, found, wanted)
		}
	}
}
