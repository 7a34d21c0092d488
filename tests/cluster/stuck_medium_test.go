package cluster_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/disk"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// The disk of a volume hangs while a host reads it. The volume is reported, and it is well again when the disk continues.
func TestAVolumeWhoseDiskHangsIsNotReadyUntilTheDiskContinues(t *testing.T) {
	directory := t.TempDir()
	at := filepath.Join(directory, "pool")
	d, err := disk.Mount(filepath.Join(directory, "backing"), at)
	if err != nil {
		t.Skip("no FUSE here: ", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1, Pool: at})
	t.Cleanup(d.Resume) // a process cannot end before its calls do
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.Login(ctx, 1, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.Good(ctx, initiator.TestUnitReady(0)); err != nil {
		t.Fatal(err)
	}
	d.Hang()
	answer := make(chan error, 1)
	go func() {
		_, err := session.Good(ctx, initiator.Read(0, 0, 1, sectorSize))
		answer <- err
	}()
	name := cluster.VolumeName(0)
	message := waitFor(ctx, t, c, "volume", name, "Degraded", "TRUE", "MediumStuck")
	if !strings.Contains(message, cluster.GatewayName(owner)) {
		t.Errorf("the condition does not name the gateway: %q", message)
	}
	waitFor(ctx, t, c, "volume", name, "Ready", "FALSE", "MediumStuck")
	select {
	case err := <-answer:
		t.Errorf("the command did not wait for the disk: %v", err)
	default:
	}
	d.Resume()
	if err := <-answer; err != nil {
		t.Error(err)
	}
	waitFor(ctx, t, c, "volume", name, "Ready", "TRUE", "Ready")
	untilEvent(ctx, t, c, "MediumStuck")
	untilEvent(ctx, t, c, "DataUsable")
}

func untilEvent(ctx context.Context, t *testing.T, c *cluster.Cluster, reason string) {
	t.Helper()
	if err := netns.Until(ctx, func() error {
		text, err := c.Control(ctx, "events")
		if err == nil && !strings.Contains(string(text), reason) {
			err = errors.New("it is not there")
		}
		return err
	}); err != nil {
		t.Fatalf("no event %s: %v", reason, err)
	}
}
