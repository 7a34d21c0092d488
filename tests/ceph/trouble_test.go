package ceph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// epochs returns the epochs in which the volumes are served.
func epochs(ctx context.Context, t *testing.T, c *cluster.Cluster) []uint64 {
	t.Helper()
	var all []uint64
	err := netns.Until(ctx, func() error { // one may be moving to a gateway that connected later than the others
		all = nil
		for volume := range c.Volumes {
			epoch, err := c.Owned(ctx, volume)
			if err != nil {
				return err
			}
			all = append(all, epoch)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Faults of Ceph are not attributed to gateways: I/O through owners and forwarders waits and continues, no gateway is fenced, and
// no volume moves.
func TestDisksMonitorsAndAllOfCephMayGoAndComeBackUnderACluster(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 3, Ceph: &cluster.Ceph{Monitors: 3, Disks: 3, DiskMiB: 2048}})
	w := write(ctx, t, c)
	before := epochs(ctx, t, c)
	ceph := func(action string, words ...string) {
		if err := c.MiniCeph(ctx, action, words...); err != nil {
			t.Fatal(err)
		}
	}
	for _, daemon := range []string{"osd.0", "mon.0"} { // mon.0 is the leader
		ceph("down", daemon, "KILL")
		w.more(ctx, 10)
		ceph("up", daemon)
		w.more(ctx, 10)
	}
	ceph("stop")
	ceph("start")
	w.more(ctx, 10)
	w.end(ctx)
	if now := epochs(ctx, t, c); !slices.Equal(now, before) {
		t.Errorf("volumes were given to others: epochs %v before, %v now", before, now)
	}
	if clients := blocklisted(ctx, t, c); len(clients) != 0 {
		t.Errorf("blocklisted: %v", clients)
	}
}

// One gateway is disconnected from Ceph: its hosts wait, those of the others do not. When it is connected again, everything
// continues. If a volume is moved from it meanwhile, it cannot release the volume: it is fenced, and returns as a new client.
func TestAnOwnerCutFromCephKeepsItsHostsWaitingUntilItIsBackOrItsVolumeIsMoved(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 3})
	w := write(ctx, t, c)
	before := epochs(ctx, t, c)
	owner := ownerOf(ctx, t, c, 0)
	var spared []int
	for volume := range c.Volumes {
		if !slices.Contains(volumesOf(ctx, t, c, owner), volume) {
			spared = append(spared, volume)
		}
	}
	cut := func() (heal func() error) {
		heal, err := c.Network.Partition(cluster.GatewayName(owner), cluster.CephNode, cluster.Storage)
		if err != nil {
			t.Fatal(err)
		}
		return heal
	}
	heal := cut()
	stood := w.progress()[0]
	w.moreOf(ctx, spared, 100)
	if now := w.progress()[0]; now > stood+2 { // one was in progress, and at most one more
		t.Errorf("%d writes were acknowledged without a way to Ceph", now-stood)
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	w.more(ctx, 10)
	if now := epochs(ctx, t, c); !slices.Equal(now, before) {
		t.Errorf("volumes were given to others for a cut of some seconds: epochs %v before, %v now", before, now)
	}
	if clients := blocklisted(ctx, t, c); len(clients) != 0 {
		t.Errorf("blocklisted: %v", clients)
	}

	heal = cut()
	other := (owner + 1) % len(c.Gateways)
	control(ctx, t, c, "volume", "move", cluster.VolumeName(0), "--to", cluster.GatewayName(other), "--wait")
	w.moreOf(ctx, []int{0}, 20)
	if now := ownerOf(ctx, t, c, 0); now != other {
		t.Errorf("%s owns it", cluster.GatewayName(now))
	}
	if clients := blocklisted(ctx, t, c); len(clients) != 1 {
		t.Errorf("the client that could not release it is to be blocklisted, these are: %v", clients)
	}
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	w.more(ctx, 10)
	w.end(ctx)
	if unexpected := c.Gateways[owner].Unexpected(); len(unexpected) > 0 {
		t.Errorf("it ended: %v", unexpected)
	}
}

// If a pool has no space, writes that need some are refused (DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT), through owner
// and forwarder alike, and accepted again once there is space.
func TestVolumesWithoutRoomRefuseWritesUntilThereIsSome(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, VolumeMiB: 256, Ceph: &cluster.Ceph{Manager: true, DiskMiB: 2048}})
	noRoom := initiator.Sense{Key: 0x7, Code: 0x27, Qualifier: 0x07}
	data := make([]byte, 64*blockSize)
	place := uint64(0)
	for gateway := range c.Gateways {
		session := login(ctx, t, c, 1, gateway)
		writes(ctx, t, session, 0, 1)
		// Each write goes to blocks that were not written before.
		next := func() (full bool, err error) {
			place += 64
			response, err := session.Do(ctx, initiator.Write(0, place, data, blockSize))
			if err == nil && response.Status != initiator.StatusGood && response.Sense != noRoom {
				err = fmt.Errorf("the host got %s", response)
			}
			return err == nil && response.Sense == noRoom, err
		}
		rados(ctx, t, c, "ceph osd pool set-quota rbd max_bytes 1")
		until(ctx, t, func() error {
			full, err := next()
			if err == nil && !full {
				err = errors.New("it is not full yet")
			}
			return err
		})
		reads(ctx, t, session, 0, 1)
		rados(ctx, t, c, "ceph osd pool set-quota rbd max_bytes 0")
		until(ctx, t, func() error {
			full, err := next()
			if err == nil && full {
				err = errors.New("it is full still")
			}
			return err
		})
		reads(ctx, t, session, 0, 1)
	}
}

// Ceph drops the watches of a gateway that it has not heard for a while. When the gateway is connected again it continues, or
// releases a volume whose lock librbd could not keep (gateway/decisions/ceph.md). In either case no gateway is fenced, and its
// hosts continue.
func TestAnOwnerCutFromCephForLongerThanAWatchLivesGoesOnOrBeginsANewEpoch(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 2})
	rados(ctx, t, c, "ceph config set osd osd_client_watch_timeout 3")
	owner := (ownerOf(ctx, t, c, 0) + 1) % len(c.Gateways) // the gateway that opens the image next
	control(ctx, t, c, "volume", "move", cluster.VolumeName(0), "--to", cluster.GatewayName(owner), "--wait")
	w := write(ctx, t, c)
	before := epochs(ctx, t, c)
	image, err := c.ImageOf(ctx, cluster.VolumeName(0))
	if err != nil {
		t.Fatal(err)
	}
	address := c.Network.Address(cluster.GatewayName(owner), cluster.Storage)
	heal, err := c.Network.Partition(cluster.GatewayName(owner), cluster.CephNode, cluster.Storage)
	if err != nil {
		t.Fatal(err)
	}
	until(ctx, t, func() error {
		if status := rados(ctx, t, c, "rbd status rbd/"+image); strings.Contains(status, "watcher="+address+":") {
			return errors.New("it is still watched: " + status)
		}
		return nil
	})
	if err := heal(); err != nil {
		t.Fatal(err)
	}
	w.more(ctx, 10)
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	w.more(ctx, 10)
	w.end(ctx)
	t.Logf("epochs %v before, %v now", before, epochs(ctx, t, c))
	if clients := blocklisted(ctx, t, c); len(clients) != 0 {
		t.Errorf("blocklisted: %v", clients)
	}
	if unexpected := c.Gateways[owner].Unexpected(); len(unexpected) > 0 {
		t.Errorf("it ended: %v", unexpected)
	}
}
