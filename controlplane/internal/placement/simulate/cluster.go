package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"sluice.dev/sluice/controlplane/internal/placement"
)

// size of a simulated cluster. Racks have a leaf switch on each of two fabrics, which spines connect.
type size struct {
	Gateways         int `json:"gateways"`
	Racks            int `json:"racks"`
	Spines           int `json:"spines"`
	Targets          int `json:"targets"`
	VolumesPerTarget int `json:"volumesPerTarget"`
	Hosts            int `json:"hosts"`
}

// full is 1,000 gateways on 100 switches, 100,000 volumes and 10,000 hosts.
var full = size{
	Gateways: 1000, Racks: 46, Spines: 4, Targets: 10_000, VolumesPerTarget: 10, Hosts: 10_000,
}

const pool = "main"

var fabrics = []string{"a", "b"}

func leaf(fabric string, rack int) string { return fmt.Sprintf("%s-leaf-%02d", fabric, rack) }

// newCluster returns a cluster without assignments.
func newCluster(s size, seed uint64) placement.Cluster {
	random := rand.New(rand.NewPCG(seed, 0))
	var c placement.Cluster
	for _, name := range fabrics {
		c.Fabrics = append(c.Fabrics, newFabric(name, s))
	}
	for i := range s.Gateways {
		c.Gateways = append(c.Gateways, newGateway(i, s, random))
	}
	for i := range s.Hosts {
		c.Hosts = append(c.Hosts, newHost(i, s, random))
	}
	for i := range s.Targets {
		addTarget(&c, i, s, random)
	}
	return c
}

func newFabric(name string, s size) placement.Fabric {
	f := placement.Fabric{Name: name}
	for spine := range s.Spines {
		f.Switches = append(f.Switches, fmt.Sprintf("%s-spine-%d", name, spine))
	}
	for rack := range s.Racks {
		f.Switches = append(f.Switches, leaf(name, rack))
		for spine := range s.Spines {
			f.Links = append(f.Links, placement.Link{A: leaf(name, rack), B: f.Switches[spine], Cost: 1})
		}
	}
	return f
}

// newGateway puts a gateway into a rack, one in ten with twice the weight.
func newGateway(i int, s size, random *rand.Rand) placement.Gateway {
	g := placement.Gateway{
		Number: uint32(i + 1), Name: fmt.Sprintf("gateway-%04d", i), Pool: pool,
		Node: fmt.Sprintf("node-%04d", i), Weight: 100,
	}
	if random.IntN(10) == 0 {
		g.Weight = 200
	}
	for at, fabric := range fabrics {
		g.Portals = append(g.Portals, placement.Portal{
			Address: fmt.Sprintf("192.0.%d.%d:3260", 2+at, i), PortalGroupTag: uint32(at + 1),
			Fabric: fabric, Switch: leaf(fabric, i%s.Racks),
		})
	}
	return g
}

// newHost attaches nine hosts in ten to both fabrics, one in twenty to one fabric, and leaves the place of one in twenty unknown.
func newHost(i int, s size, random *rand.Rand) placement.Host {
	h := placement.Host{Name: fmt.Sprintf("host-%05d", i)}
	rack, kind := random.IntN(s.Racks), random.IntN(20)
	for at, fabric := range fabrics {
		if kind >= 2 || kind == 1 && at == 0 {
			h.Switches = append(h.Switches, placement.Attachment{Fabric: fabric, Switch: leaf(fabric, rack)})
		}
	}
	return h
}

// addTarget adds a target of one to eight hosts, and its volumes. The volumes of one target in ten are in the local pool of a
// node. Loads are log-normal: most volumes are nearly idle, and a few are busy.
func addTarget(c *placement.Cluster, i int, s size, random *rand.Rand) {
	t := placement.Target{Name: fmt.Sprintf("target-%05d", i), GatewayPool: pool, Paths: 2}
	kind, node := placement.RBDPool, ""
	if random.IntN(10) == 0 {
		kind, node = placement.LocalPool, c.Gateways[random.IntN(s.Gateways)].Node
	}
	for v := range s.VolumesPerTarget {
		name := fmt.Sprintf("volume-%05d-%02d", i, v)
		load := min(100*math.Exp(1.5*random.NormFloat64()), 20_000)
		c.Volumes = append(c.Volumes, placement.Volume{
			Name: name, PoolKind: kind, Node: node, Load: uint64(load),
		})
		t.Volumes = append(t.Volumes, name)
	}
	for range 1 + random.IntN(8) {
		t.Hosts = append(t.Hosts, c.Hosts[random.IntN(s.Hosts)].Name)
	}
	c.Targets = append(c.Targets, t)
}

// apply makes a plan the present assignment.
func apply(c placement.Cluster, a placement.Assignment) placement.Cluster {
	paths := make(map[string][]uint32, len(a.Targets))
	for _, t := range a.Targets {
		paths[t.Target] = t.Gateways
	}
	owners := make(map[string]uint32, len(a.Volumes))
	for _, v := range a.Volumes {
		owners[v.Volume] = v.Owner
	}
	c.Targets = append([]placement.Target(nil), c.Targets...)
	for i := range c.Targets {
		c.Targets[i].PathSet = paths[c.Targets[i].Name]
	}
	c.Volumes = append([]placement.Volume(nil), c.Volumes...)
	for i := range c.Volumes {
		c.Volumes[i].Owner = owners[c.Volumes[i].Name]
	}
	return c
}

// withHealth sets the health of gateways first…first+count-1.
func withHealth(c placement.Cluster, first, count int, health placement.Health) placement.Cluster {
	c.Gateways = append([]placement.Gateway(nil), c.Gateways...)
	for i := first; i < first+count; i++ {
		c.Gateways[i].Health = health
	}
	return c
}
