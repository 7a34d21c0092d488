package placement

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

type target struct {
	*Target
	pool *pool
	// want is the wanted number of gateways in the path set: the paths of the spec, or one for each node of the target's local
	// volumes if these are more.
	want int
	// present is the present path set, as far as its gateways exist; set is the planned one.
	present, set []int32
	// sites of its hosts; one unknown site for a target without hosts.
	sites   []siteHosts
	hosts   []int32
	volumes []int32
	// nodes of its local volumes, each of which needs a gateway in the path set.
	nodes []string
	// others are targets that also export a volume of this one.
	others []int32
	// share is the assumed load of each gateway of the path set.
	share int64
	// hops by gateway site, in thousandths of network.unit.
	hops     []int64
	gain     float64
	improved bool
}

// siteHosts counts the hosts of a target at one site.
type siteHosts struct {
	site  int32
	count int32
}

func (t *target) has(g int32) bool { return slices.Contains(t.set, g) }

func (p *planner) indexVolumes(in []Volume, targets []Target) {
	sorted := slices.Clone(in)
	sortByName(sorted, func(v *Volume) string { return v.Name })
	luns := len(sorted) + len(targets)
	for i := range targets {
		luns += len(targets[i].Volumes)
	}
	p.volIndex = make(map[string]int32, len(sorted))
	p.policy.volumeLoad = max(1, clampLoad(uint64(p.policy.volumeLoad), 2*luns))
	for i := range sorted {
		v := &sorted[i]
		if _, taken := p.volIndex[v.Name]; taken {
			duplicate(&p.problems, model.KindVolume, v.Name)
			continue
		}
		next := volume{Volume: v, present: none, owner: none}
		next.load = clampLoad(v.Load, 2*luns) + p.policy.volumeLoad
		if v.Owner != 0 {
			if at, known := p.byNumber[v.Owner]; known {
				next.present = at
			} else {
				p.problems.add(model.KindVolume, v.Name, ReasonUnknownGateway,
					fmt.Sprintf("its owner is gateway %d, which doesn't exist", v.Owner),
					"it is given another owner: fence that gateway's last incarnation before it opens")
			}
		}
		if v.PoolKind != LocalPool && v.PoolKind != RBDPool {
			p.problems.add(model.KindVolume, v.Name, ReasonMissingPool,
				"its storage pool doesn't exist", "it is given no owner: create the storage pool")
		}
		p.volIndex[v.Name] = int32(len(p.volumes))
		p.volumes = append(p.volumes, next)
	}
}

func (p *planner) indexTargets(in []Target) {
	sorted := slices.Clone(in)
	sortByName(sorted, func(t *Target) string { return t.Name })
	for i := range sorted {
		t := &sorted[i]
		if i > 0 && t.Name == sorted[i-1].Name {
			duplicate(&p.problems, model.KindTarget, t.Name)
			continue
		}
		p.targets = append(p.targets, p.newTarget(t, int32(len(p.targets))))
	}
	for i := range p.targets {
		p.findOthers(int32(i))
	}
}

func (p *planner) newTarget(in *Target, index int32) target {
	t := target{Target: in, pool: p.pools[in.GatewayPool], want: int(in.Paths)}
	if t.pool == nil {
		p.problems.add(model.KindTarget, in.Name, ReasonUnknownPool,
			fmt.Sprintf("its gateway pool %q has no gateways", in.GatewayPool),
			"nothing can export it: add gateways to the pool or correct spec.gatewayPool")
		t.pool = &pool{name: in.GatewayPool}
	}
	if in.Paths < 1 || in.Paths > model.MaxPaths {
		t.want = model.MaxPaths
		if in.Paths < 1 {
			t.want = model.DefaultPaths
		}
		p.problems.add(model.KindTarget, in.Name, ReasonOutOfRange,
			fmt.Sprintf("it asks for %d paths; 1 to %d are possible", in.Paths, model.MaxPaths),
			fmt.Sprintf("it is given %d: correct spec.paths", t.want))
	}
	for _, number := range slices.Compact(slices.Sorted(slices.Values(in.PathSet))) {
		if g, known := p.byNumber[number]; known {
			t.present = append(t.present, g)
			continue
		}
		p.problems.add(model.KindTarget, in.Name, ReasonUnknownGateway,
			fmt.Sprintf("its path set has gateway %d, which doesn't exist", number),
			"another takes its place: drop the number from status.pathSet")
	}
	p.addVolumes(&t, index)
	p.addHosts(&t)
	if len(t.nodes) > t.want {
		t.want = min(len(t.nodes), model.MaxPaths)
		p.problems.add(model.KindTarget, in.Name, ReasonTooManyNodes,
			fmt.Sprintf("its local volumes are on %d nodes, which are more than its %d paths",
				len(t.nodes), in.Paths),
			fmt.Sprintf("it is given %d paths: make a target for each node, or raise spec.paths", t.want))
	}
	t.share /= int64(t.want)
	return t
}

func (p *planner) addVolumes(t *target, index int32) {
	t.share = p.policy.volumeLoad
	for _, name := range slices.Compact(slices.Sorted(slices.Values(t.Volumes))) {
		i, known := p.volIndex[name]
		if !known {
			p.problems.add(model.KindTarget, t.Name, ReasonUnknownVolume,
				fmt.Sprintf("it maps volume %q, which doesn't exist", name),
				"the LUN is left out: create the volume or unmap it")
			continue
		}
		v := &p.volumes[i]
		v.targets = append(v.targets, index)
		t.volumes = append(t.volumes, i)
		t.share += v.load
		if v.PoolKind == LocalPool && !slices.Contains(t.nodes, v.Node) {
			t.nodes = append(t.nodes, v.Node)
		}
	}
	slices.Sort(t.nodes)
}

func (p *planner) addHosts(t *target) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(t.Hosts))) {
		i, known := p.hostIndex[name]
		if !known {
			p.problems.add(model.KindTarget, t.Name, ReasonUnknownHost,
				fmt.Sprintf("it lets in host %q, which doesn't exist", name),
				"the host is left out: create it or take it off spec.hosts")
			continue
		}
		t.hosts = append(t.hosts, i)
		site := p.hosts[i].site
		at := slices.IndexFunc(t.sites, func(s siteHosts) bool { return s.site == site })
		if at < 0 {
			at = len(t.sites)
			t.sites = append(t.sites, siteHosts{site, 0})
		}
		t.sites[at].count++
	}
	if len(t.sites) == 0 {
		t.sites = []siteHosts{{0, 1}}
	}
}

// findOthers lists the targets that share volumes with a target: their path sets must have a common gateway.
func (p *planner) findOthers(index int32) {
	t := &p.targets[index]
	for _, v := range t.volumes {
		for _, other := range p.volumes[v].targets {
			if other != index && !slices.Contains(t.others, other) {
				t.others = append(t.others, other)
			}
		}
	}
}

// sumLoads computes the total load of the gateways of each pool. It does not depend on the plan, so an applied plan yields the
// same fair shares.
func (p *planner) sumLoads() {
	for i := range p.targets {
		t := &p.targets[i]
		t.pool.pathLoad += t.share * int64(t.want)
		t.hops = p.targetHops(t)
	}
	for i := range p.volumes {
		if v := &p.volumes[i]; len(v.targets) > 0 {
			p.targets[v.targets[0]].pool.ownerLoad += v.load
		}
	}
}

// targetHops returns the distance of each gateway site from the target's hosts: three parts the mean, one part the farthest host,
// so that this host is considered.
func (p *planner) targetHops(t *target) []int64 {
	hops := make([]int64, len(p.net.gatewaySites.places))
	farthest := make([]int64, len(hops))
	var hosts int64
	for _, s := range t.sites {
		hosts += int64(s.count)
		for i, hop := range p.net.pathsOf(s.site).hops {
			hops[i] += hop * int64(s.count)
			farthest[i] = max(farthest[i], hop)
		}
	}
	for i := range hops {
		hops[i] = (3*hops[i]/hosts + farthest[i]) / 4
	}
	return hops
}

// fairLoad returns the load of a gateway if all were loaded in proportion to their weights; at least 1.
func fairLoad(g *gateway, poolLoad int64) float64 {
	if g.pool.weight == 0 {
		return 1
	}
	return max(1, float64(poolLoad)*float64(g.weight)/float64(g.pool.weight))
}

func (p *planner) pathFair(g *gateway) float64  { return fairLoad(g, g.pool.pathLoad) }
func (p *planner) ownerFair(g *gateway) float64 { return fairLoad(g, g.pool.ownerLoad) }

// cost returns the cost of adding a load to a gateway, per unit of that load, in fair shares. The same cost decides on the first
// assignment and on moves, so these never undo each other.
func (p *planner) cost(carried, load int64, fair float64, hops int64) float64 {
	return loadCost(carried, load, fair) + p.hopCost(hops)
}

func loadCost(carried, load int64, fair float64) float64 {
	return (float64(carried) + float64(load)/2) / fair
}

// The conversion prevents fused operations, which would round differently on different machines.
func (p *planner) hopCost(hops int64) float64 {
	return float64(p.policy.hop * float64(hops) / 1000)
}
