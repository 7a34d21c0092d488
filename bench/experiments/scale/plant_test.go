package main

import (
	"math"
	"testing"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

func small() *plant {
	var fabrics []string
	for i := range ports {
		fabrics = append(fabrics, fabric(i))
	}
	made := &cluster.Cluster{Options: cluster.Options{Fabrics: fabrics},
		Network: &netns.Network{Fabrics: fabrics, Nodes: []string{"gw-1", "gw-2", "gw-3", "gw-4", "gw-5"}}}
	for range 1 + ports {
		made.Gateways = append(made.Gateways, &netns.Process{})
	}
	return &plant{&harness.Bench{Mode: harness.Short}, made}
}

func TestEachClientUsesThePortOfItsFabricAndTheOwnerOfItsLUN(t *testing.T) {
	p := small()
	for _, where := range []string{oneGateway, fourGateways} {
		for client := range clients {
			portal, lun := p.pathOf(cell{gateways: where}, client, 0)
			if want := p.Portals(ownerOfVolume(lun))[portOf(client)]; portal != want {
				t.Errorf("%s, client %d: LUN %d by %s, not by %s", where, client, lun, portal, want)
			}
		}
	}
}

func TestProcessesOfOneClientAreDividedAmongItsLUNs(t *testing.T) {
	p := small()
	loads := p.loads(cell{oneGateway, 1, 10, 4, 256 << 10, "read"})
	luns, processes := map[int]bool{}, 0
	for _, load := range loads {
		luns[load.LUN] = true
		processes += load.Depth
	}
	if len(loads) != 4 || len(luns) != 4 || processes != 10 {
		t.Errorf("%d loads, %d LUNs, %d processes", len(loads), len(luns), processes)
	}
	if loads := p.loads(cell{fourGateways, 8, 4, 4, 256 << 10, "read"}); len(loads) != 8 || loads[7].Depth != 4 || len(loads[0].Watch) != 4 {
		t.Errorf("%+v", loads)
	}
}

func TestTheRateOfLargeCommandsComesFromHowLongTheyTake(t *testing.T) {
	if got := rate(cell{processes: 10, size: 16 << 20}, 14); math.Abs(got-10*(16<<20)/14.0) > 1 {
		t.Error(got)
	}
}
