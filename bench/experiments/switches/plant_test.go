package main

import (
	"slices"
	"testing"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

func TestHopsAreLinksBetweenTheSwitchesOfARow(t *testing.T) {
	for _, c := range []struct {
		fabric     string
		a, b, want int
	}{{"one", 0, 5, 0}, {"two", 0, 2, 0}, {"two", 0, 3, 1}, {"three", 0, 2, 2}, {"three", 4, 2, 1}, {"three", 1, 4, 0}} {
		if got := hopsBetween(c.fabric, c.a, c.b); got != c.want {
			t.Errorf("%s: %d and %d are %d apart, not %d", c.fabric, c.a, c.b, got, c.want)
		}
	}
}

func TestTheFarthestGatewaysAreOneForEachHostAndAtTheOtherEnd(t *testing.T) {
	for _, fabric := range fabrics {
		order := opposite(fabric)
		if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5}) {
			t.Errorf("%s: %v gives two hosts one gateway", fabric, order)
		}
		last := switchesOf(fabric) - 1
		for i, g := range order {
			if at := switchOf(fabric, i); (at == 0 || at == last) && hopsBetween(fabric, i, g) != last {
				t.Errorf("%s: host %d has gateway %d, which is not at the other end", fabric, i, g)
			}
		}
	}
}

func TestAHostGoesToThePortalOfTheOwnerElseToTheFirst(t *testing.T) {
	p := &plant{Bench: &harness.Bench{}, numbers: []uint32{11, 12, 13}, Cluster: &cluster.Cluster{
		Options:  cluster.Options{Fabrics: fabrics},
		Network:  &netns.Network{Fabrics: fabrics, Nodes: []string{"gw-1", "gw-2", "gw-3"}},
		Gateways: make([]*netns.Process, 3)}}
	for i := range p.Gateways {
		p.Gateways[i] = &netns.Process{Name: cluster.GatewayName(i)}
	}
	const on = 2 // the fabric of three switches
	shown := []string{p.Portals(1)[on] + ",5", p.Portals(2)[on] + ",8"}
	for owner, want := range map[uint32]struct {
		gateway int
		owner   bool
	}{12: {1, true}, 13: {2, true}, 99: {1, false}} {
		at, err := p.optimized(path{target: "iqn.x"}, shown, "three", 0, owner)
		if err != nil || at.portal != p.Portals(want.gateway)[on] || at.owner != want.owner || at.hops != want.gateway {
			t.Errorf("owner %d: %+v, %v", owner, at, err)
		}
	}
	if _, err := p.optimized(path{}, []string{"192.0.2.1:3260,1"}, "three", 0, 11); err == nil {
		t.Error("a portal without a gateway was accepted")
	}
}

func TestOnlyAServingGatewayCountsAsOwner(t *testing.T) {
	if number, err := ownerIn([]byte(`{"status": {"ownership": "OWNERSHIP_STATE_OWNED", "ownerGateway": 4}}`), "v"); err != nil || number != 4 {
		t.Errorf("%d, %v", number, err)
	}
	if _, err := ownerIn([]byte(`{"status": {"ownership": "OWNERSHIP_STATE_FENCING", "ownerGateway": 4}}`), "v"); err == nil {
		t.Error("a volume that is being fenced has an owner")
	}
}
