package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// ownersOf returns the owners of all volumes, gateways from 0.
func ownersOf(ctx context.Context, c *cluster.Cluster) ([]int, error) {
	owners := make([]int, c.Options.Volumes)
	for i := range owners {
		var err error
		if owners[i], err = c.Owner(ctx, i); err != nil {
			return nil, err
		}
	}
	return owners, nil
}

// owned waits until a gateway owns this number of volumes, and returns the owner of each.
func owned(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway, volumes int) (owners []int) {
	t.Helper()
	if err := netns.Until(ctx, func() (err error) {
		if owners, err = ownersOf(ctx, c); err != nil {
			return err
		}
		count := 0
		for _, owner := range owners {
			if owner == gateway {
				count++
			}
		}
		if count != volumes {
			err = fmt.Errorf("%s owns %d: %v", cluster.GatewayName(gateway), count, owners)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return owners
}

// writing writes to all LUNs over all paths until stop is called, which returns the number of failed writes.
func writing(ctx context.Context, t *testing.T, c *cluster.Cluster) (stop func() (written, failed int)) {
	t.Helper()
	var luns []uint16
	for i := range c.Options.Volumes {
		luns = append(luns, uint16(i))
	}
	multipath := initiator.Open(initiator.Config{Portals: c.AllPortals(), Target: cluster.Target, Initiator: cluster.Initiator + "1", LUNs: luns})
	t.Cleanup(multipath.Close)
	if err := multipath.WaitPaths(ctx, len(c.AllPortals())); err != nil {
		t.Fatal(err)
	}
	running, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	var loop sync.WaitGroup
	written, failed := 0, 0
	loop.Go(func() {
		for running.Err() == nil {
			for _, lun := range luns {
				result := multipath.Run(ctx, initiator.Write(lun, 0, make([]byte, 512), 512))
				if result.Outcome == initiator.OK {
					written++
				} else {
					failed++
				}
			}
		}
	})
	return func() (int, int) {
		cancel()
		loop.Wait()
		return written, failed
	}
}

// Rebalancing moves little: the returned gateway gets its fair share, no volumes move between the others, and hosts see no error.
func TestAGatewayThatIsBackGetsItsFairShareAndNothingElseMoves(t *testing.T) {
	const gateways, volumes = 3, 9
	c, ctx := start(t, cluster.Options{Gateways: gateways, Volumes: volumes, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owned(ctx, t, c, 0, volumes/gateways)
	stop := writing(ctx, t, c)
	if err := c.Drain(ctx, 0); err != nil {
		t.Fatal(err)
	}
	before := owned(ctx, t, c, 0, 0)
	if err := c.Undrain(ctx, 0); err != nil {
		t.Fatal(err)
	}
	after := owned(ctx, t, c, 0, volumes/gateways)
	for i, owner := range after {
		if owner != 0 && owner != before[i] {
			t.Errorf("%s went from %s to %s", cluster.VolumeName(i), cluster.GatewayName(before[i]), cluster.GatewayName(owner))
		}
	}
	if written, failed := stop(); written == 0 || failed > 0 {
		t.Errorf("%d writes were acknowledged, %d failed", written, failed)
	}
}
