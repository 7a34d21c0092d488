package cluster_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// noSpace is SPACE ALLOCATION FAILED WRITE PROTECT (SBC-4 §4.7.3.6).
var noSpace = initiator.Sense{Key: 0x07, Code: 0x27, Qualifier: 0x07}

const (
	fullBlocks = 512     // of sectorSize, which are allocated before the pool is full
	freeBlock  = 1 << 14 // is not allocated
)

// unmap is UNMAP of one range.
func unmap(lun uint16, block uint64, blocks uint32) initiator.Command {
	list := make([]byte, 24)
	binary.BigEndian.PutUint16(list, 22)
	binary.BigEndian.PutUint16(list[2:], 16)
	binary.BigEndian.PutUint64(list[8:], block)
	binary.BigEndian.PutUint32(list[16:], blocks)
	return initiator.Command{LUN: lun, CDB: []byte{0x42, 0, 0, 0, 0, 0, 0, 0, byte(len(list)), 0}, Out: list, Writes: true}
}

// answered runs a command until it is answered without a unit attention.
func answered(ctx context.Context, t *testing.T, session *initiator.Session, command initiator.Command) initiator.Response {
	t.Helper()
	for {
		response, err := session.Do(ctx, command)
		if err != nil {
			t.Fatal(err)
		}
		if response.Sense.Key != initiator.SenseUnitAttention {
			return response
		}
	}
}

func granted(ctx context.Context, t *testing.T, session *initiator.Session, what string, command initiator.Command) []byte {
	t.Helper()
	data, err := session.Good(ctx, command)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return data
}

// C4: hosts can reserve a volume of a full pool, its next owner serves it, and hosts can free space.
func TestAVolumeOfAFullPoolIsReservedTakenOverAndFreed(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			pool, err := netns.Small(kind, t.TempDir())
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() {
				if err := pool.Unmount(); err != nil {
					t.Error(err)
				}
			})
			c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 2, Replicas: 1, Pool: pool.Directory})
			if err := errors.Join(c.WaitReady(ctx), c.Bring(ctx, 0, 0)); err != nil {
				t.Fatal(err)
			}
			fullPool(ctx, t, c, pool)
		})
	}
}

func fullPool(ctx context.Context, t *testing.T, c *cluster.Cluster, pool *netns.FileSystem) {
	owner, other := login(ctx, t, c, 1, 0), login(ctx, t, c, 2, 1)
	data := bytes.Repeat([]byte{7}, fullBlocks*sectorSize)
	granted(ctx, t, owner, "a write with space", initiator.Write(0, 0, data, sectorSize))
	if err := pool.Fill(); err != nil {
		t.Fatal(err)
	}
	one := initiator.Write(0, freeBlock, make([]byte, 8*sectorSize), sectorSize)
	if response := answered(ctx, t, owner, one); response.Sense != noSpace {
		t.Fatalf("a write without space: %v", response)
	}
	const key, second = 17, 18
	granted(ctx, t, owner, "REGISTER", initiator.PersistentReserve(0, initiator.PRRegister, 0, 0, key))
	granted(ctx, t, owner, "RESERVE", initiator.PersistentReserve(0, initiator.PRReserve, initiator.WriteExclusiveRegistrantsOnly, key, 0))
	if err := c.Gateways[0].Kill(); err != nil {
		t.Fatal(err)
	}
	var found []byte
	if err := netns.Until(ctx, func() (err error) {
		found, err = other.Good(ctx, initiator.Read(0, 0, fullBlocks, sectorSize))
		return err
	}); err != nil {
		t.Fatalf("after the death of the owner: %v", err)
	}
	if !bytes.Equal(found, data) {
		t.Error("another content is read")
	}
	overwrite := initiator.Write(0, 0, data, sectorSize)
	if response := answered(ctx, t, other, overwrite); response.Status != initiator.StatusReservationConflict {
		t.Errorf("the reservation is lost: a write of another host is answered with %v", response)
	}
	granted(ctx, t, other, "REGISTER at the next owner", initiator.PersistentReserve(0, initiator.PRRegister, 0, 0, second))
	if keys := granted(ctx, t, other, "READ KEYS", initiator.ReservationKeys(0)); len(keys) != 8+16 {
		t.Errorf("keys % x", keys)
	}
	granted(ctx, t, other, "a write to allocated blocks", overwrite)
	if response := answered(ctx, t, other, one); response.Sense != noSpace {
		t.Errorf("a write without space at the next owner: %v", response)
	}
	returns(ctx, t, c, data)
	if err := c.Bring(ctx, 0, 1); err != nil {
		t.Fatal(err)
	}
	granted(ctx, t, other, "UNMAP", unmap(0, 0, fullBlocks/2))
	granted(ctx, t, other, "a write after UNMAP", one)
	if err := pool.Fill(); err != nil {
		t.Fatal(err)
	}
	deleted(ctx, t, c)
}

// returns starts the first gateway again, which was killed, and moves the volume to it.
func returns(ctx context.Context, t *testing.T, c *cluster.Cluster, data []byte) {
	t.Helper()
	if err := c.Gateways[0].Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.WaitReady(ctx), c.Bring(ctx, 0, 0)); err != nil {
		t.Fatalf("a gateway that starts in a full pool: %v", err)
	}
	if found := granted(ctx, t, login(ctx, t, c, 1, 0), "a read there", initiator.Read(0, 0, fullBlocks, sectorSize)); !bytes.Equal(found, data) {
		t.Error("another content is read there")
	}
}

// deleted removes the second volume from its target and deletes it, although the pool is full.
func deleted(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if err := mapOnlyFirst(ctx, t, c, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Control(ctx, "volume", "delete", cluster.VolumeName(1), "--wait"); err != nil {
		t.Error(err)
	}
	for _, kind := range []string{"volume-*", ".sluice/*.volume", ".sluice/*.slots", ".sluice/*.image"} {
		if found, err := filepath.Glob(filepath.Join(c.Pool, kind)); err != nil || len(found) != 1 {
			t.Errorf("%s: %v (%v), want those of the volume that stays", kind, found, err)
		}
	}
}
