package main

import (
	"math/rand/v2"
	"slices"

	"sluice.dev/sluice/controlplane/internal/placement"
)

// figures describe a placement.
type figures struct {
	// OwnerMaxOverMean and PathMaxOverMean compare the greatest load relative to weight with the mean.
	OwnerMaxOverMean float64 `json:"ownerMaxOverMean"`
	PathMaxOverMean  float64 `json:"pathMaxOverMean"`
	// OwnerHops is the mean number of switches between a host and the owner of a volume that it uses. RandomHops is that number
	// for randomly chosen owners, NearestHops for the nearest gateways regardless of load.
	OwnerHops   float64 `json:"ownerHops"`
	RandomHops  float64 `json:"randomHops"`
	NearestHops float64 `json:"nearestHops"`
	// OwnerMinOverMean is the least load relative to weight, divided by the mean. It shows the load that a joining gateway gets.
	OwnerMinOverMean float64 `json:"ownerMinOverMean"`
	// RedundantPermille of the targets whose hosts are all attached to two fabrics, or may be: the others cannot be redundant.
	RedundantPermille int `json:"redundantPermille"`
	Problems          int `json:"problems"`
	// OwnerLoads are the loads of all gateways relative to their fair share.
	OwnerLoads []float64 `json:"ownerLoads,omitempty"`
}

type directory struct {
	gateways map[uint32]*placement.Gateway
	hosts    map[string]*placement.Host
	volumes  map[string]*placement.Volume
	owners   map[string]uint32
}

func newDirectory(c *placement.Cluster, a *placement.Assignment) *directory {
	d := &directory{
		map[uint32]*placement.Gateway{}, map[string]*placement.Host{},
		map[string]*placement.Volume{}, map[string]uint32{},
	}
	for i := range c.Gateways {
		d.gateways[c.Gateways[i].Number] = &c.Gateways[i]
	}
	for i := range c.Hosts {
		d.hosts[c.Hosts[i].Name] = &c.Hosts[i]
	}
	for i := range c.Volumes {
		d.volumes[c.Volumes[i].Name] = &c.Volumes[i]
	}
	for _, v := range a.Volumes {
		d.owners[v.Volume] = v.Owner
	}
	return d
}

func (d *directory) onTwoFabrics(t *placement.Target) bool {
	for _, name := range t.Hosts {
		if len(d.hosts[name].Switches) == 1 {
			return false
		}
	}
	return true
}

// switches counts the switches on the path from a host to a gateway: one in the same rack, three in another. It is 0 for a host
// with an unknown place.
func switches(h *placement.Host, g *placement.Gateway) float64 {
	if len(h.Switches) == 0 {
		return 0
	}
	if h.Switches[0].Switch == g.Portals[0].Switch {
		return 1
	}
	return 3
}

func measure(c *placement.Cluster, a *placement.Assignment) figures {
	d := newDirectory(c, a)
	f := figures{Problems: len(a.Problems)}
	owned, paths := map[uint32]float64{}, map[uint32]float64{}
	for i := range c.Volumes {
		owned[d.owners[c.Volumes[i].Name]] += float64(c.Volumes[i].Load) + placement.DefaultVolumeLoad
	}
	redundant, possible := 0, 0
	for i, t := range a.Targets {
		load := 0.0
		for _, v := range c.Targets[i].Volumes {
			load += float64(d.volumes[v].Load) + placement.DefaultVolumeLoad
		}
		for _, g := range t.Gateways {
			paths[g] += load / float64(len(t.Gateways))
		}
		if d.onTwoFabrics(&c.Targets[i]) {
			possible++
			if t.Redundant {
				redundant++
			}
		}
	}
	f.RedundantPermille = redundant * 1000 / max(possible, 1)
	f.OwnerMaxOverMean, f.OwnerLoads = spread(c, owned)
	f.OwnerMinOverMean = slices.Min(f.OwnerLoads)
	f.PathMaxOverMean, _ = spread(c, paths)
	measureHops(c, d, &f)
	return f
}

func spread(
	c *placement.Cluster, loads map[uint32]float64,
) (maxOverMean float64, relative []float64) {
	var load, weight float64
	for _, g := range c.Gateways {
		if g.Health == placement.Usable {
			load, weight = load+loads[g.Number], weight+float64(g.Weight)
		}
	}
	for _, g := range c.Gateways {
		if g.Health == placement.Usable {
			u := loads[g.Number] / float64(g.Weight) / (load / weight)
			relative = append(relative, u)
			maxOverMean = max(maxOverMean, u)
		}
	}
	return maxOverMean, relative
}

func measureHops(c *placement.Cluster, d *directory, f *figures) {
	random := rand.New(rand.NewPCG(7, 7))
	count := 0.0
	for i := range c.Targets {
		t := &c.Targets[i]
		for _, name := range t.Hosts {
			h := d.hosts[name]
			if len(h.Switches) == 0 {
				continue
			}
			for _, v := range t.Volumes {
				if g := d.gateways[d.owners[v]]; g != nil {
					f.OwnerHops += switches(h, g)
				}
				f.RandomHops += switches(h, &c.Gateways[random.IntN(len(c.Gateways))])
				count++
			}
		}
		f.NearestHops += nearest(c, d, t)
	}
	f.OwnerHops /= count
	f.RandomHops /= count
	f.NearestHops /= count
}

// nearest returns the least possible sum of hops to the owners of the target's volumes. One gateway of each rack is considered;
// local volumes have no choice.
func nearest(c *placement.Cluster, d *directory, t *placement.Target) float64 {
	best := -1.0
	node := d.volumes[t.Volumes[0]].Node
	seen := map[string]bool{}
	for i := range c.Gateways {
		g := &c.Gateways[i]
		if node == "" && seen[g.Portals[0].Switch] || node != "" && g.Node != node {
			continue
		}
		seen[g.Portals[0].Switch] = true
		sum := 0.0
		for _, name := range t.Hosts {
			sum += switches(d.hosts[name], g)
		}
		if best < 0 || sum < best {
			best = sum
		}
	}
	return best * float64(len(t.Volumes))
}
