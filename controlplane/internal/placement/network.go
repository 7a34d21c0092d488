package placement

import (
	"cmp"
	"encoding/binary"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// switchRef is a switch of a fabric, by index; the switch may be unknown.
type switchRef struct{ fabric, at int32 }

// network has all fabrics, and the places of hosts and gateways on them. Many hosts share their places, and so do many gateways:
// everything is computed once for each pair of sites.
type network struct {
	graphs []*graph
	byName map[string]int32
	// unit is the median cost of a link: hops are counted in thousandths of it.
	unit         int64
	hostSites    sites
	gatewaySites sites
	hostPaths    []*hostPaths
}

// sites numbers the distinct lists of places.
type sites struct {
	places [][]switchRef
	byKey  map[string]int32
}

func (s *sites) intern(places []switchRef) int32 {
	key := make([]byte, 0, 8*len(places))
	for _, p := range places {
		key = binary.LittleEndian.AppendUint32(key, uint32(p.fabric))
		key = binary.LittleEndian.AppendUint32(key, uint32(p.at))
	}
	if id, known := s.byKey[string(key)]; known {
		return id
	}
	if s.byKey == nil {
		s.byKey = map[string]int32{}
	}
	id := int32(len(s.places))
	s.byKey[string(key)] = id
	s.places = append(s.places, places)
	return id
}

func compareSwitches(a, b switchRef) int {
	return cmp.Or(cmp.Compare(a.fabric, b.fabric), cmp.Compare(a.at, b.at))
}

func compareLinks(a, b Link) int {
	return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B), cmp.Compare(a.Cost, b.Cost))
}

func newNetwork(fabrics []Fabric, problems *problems) *network {
	n := &network{byName: map[string]int32{}}
	sorted := slices.Clone(fabrics)
	sortByName(sorted, func(f *Fabric) string { return f.Name })
	var costs []int32
	for i, fabric := range sorted {
		if i > 0 && fabric.Name == sorted[i-1].Name {
			duplicate(problems, model.KindFabric, fabric.Name)
			continue
		}
		g := newGraph(fabric, problems)
		n.byName[fabric.Name] = int32(len(n.graphs))
		n.graphs = append(n.graphs, g)
		for _, edges := range g.edges {
			for _, e := range edges {
				costs = append(costs, e.cost)
			}
		}
	}
	n.unit = 1
	if len(costs) > 0 {
		slices.Sort(costs)
		n.unit = int64(costs[len(costs)/2])
	}
	n.hostSites.intern(nil) // site 0 is that of hosts with unknown places
	return n
}

// findSwitch finds a switch by name. Nothing is known about a fabric that is not declared.
func (n *network) findSwitch(
	fabric, name string, kind model.Kind, object string, problems *problems,
) switchRef {
	at, known := n.byName[fabric]
	if !known {
		problems.add(kind, object, ReasonUnknownFabric,
			"it names fabric "+fabric+", which doesn't exist",
			"nothing is known about ways on it: create the fabric or correct the name")
		at = int32(len(n.graphs))
		n.byName[fabric] = at
		n.graphs = append(n.graphs, &graph{name: fabric})
		return switchRef{at, unknown}
	}
	index, known := n.graphs[at].switchIndex(name)
	if !known && len(n.graphs[at].switches) > 0 {
		problems.add(kind, object, ReasonUnknownSwitch,
			"it names switch "+fabric+"/"+name+", which doesn't exist",
			"its place counts as not known: add the switch to the fabric or correct the name")
	}
	return switchRef{at, index}
}

const (
	nowhere int32 = -1
	several int32 = -2
)

// hostPaths describes how a host site reaches each gateway site.
type hostPaths struct {
	// hops is the mean, over the host's fabrics, of the distance to the nearest portal, in thousandths of network.unit. A fabric
	// on which no portal is reached counts as twice the diameter.
	hops []int64
	// fabric is the only fabric on which the gateway is reached, or nowhere, or several.
	fabric []int32
}

func (n *network) pathsOf(hostSite int32) *hostPaths {
	for len(n.hostPaths) < len(n.hostSites.places) {
		n.hostPaths = append(n.hostPaths, nil)
	}
	if n.hostPaths[hostSite] == nil {
		n.hostPaths[hostSite] = n.newHostPaths(n.hostSites.places[hostSite])
	}
	return n.hostPaths[hostSite]
}

func (n *network) newHostPaths(host []switchRef) *hostPaths {
	count := len(n.gatewaySites.places)
	v := &hostPaths{hops: make([]int64, count), fabric: make([]int32, count)}
	for site, gateway := range n.gatewaySites.places {
		if len(host) == 0 {
			v.fabric[site] = onlyFabric(gateway)
			continue
		}
		v.fabric[site] = nowhere
		var sum int64
		for _, from := range host {
			hop := n.nearest(from, gateway)
			if hop == int64(apart) {
				sum += 2 * (int64(n.graphs[from.fabric].farthest) + n.unit)
				continue
			}
			sum += hop
			v.fabric[site] = join(v.fabric[site], from.fabric)
		}
		v.hops[site] = sum * 1000 / (n.unit * int64(len(host)))
	}
	return v
}

func onlyFabric(gateway []switchRef) int32 {
	only := nowhere
	for _, p := range gateway {
		only = join(only, p.fabric)
	}
	return only
}

func join(a, b int32) int32 {
	switch {
	case a == nowhere || a == b:
		return b
	case b == nowhere:
		return a
	}
	return several
}

// nearest returns the least distance to a portal on the same fabric, or apart.
func (n *network) nearest(from switchRef, gateway []switchRef) int64 {
	best := int64(apart)
	for _, to := range gateway {
		if to.fabric != from.fabric {
			continue
		}
		d := int64(n.graphs[from.fabric].distance(from.at, to.at))
		if d != int64(apart) && (best == int64(apart) || d < best) {
			best = d
		}
	}
	return best
}
