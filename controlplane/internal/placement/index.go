package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// planner is a plan in progress. Objects are sorted, and then identified by their index.
type planner struct {
	policy    policy
	problems  problems
	net       *network
	gateways  []gateway
	byNumber  map[uint32]int32
	pools     map[string]*pool
	hosts     []host
	hostIndex map[string]int32
	volumes   []volume
	volIndex  map[string]int32
	targets   []target
	movesLeft int
	// floors caches the best scores that path sets can reach, by pool and host site.
	floors map[floorKey]score
	// trials that remain for the exact search.
	trials int
}

// policy is Policy with its defaults, as fractions.
type policy struct {
	maxMoves   int
	hysteresis float64
	hop        float64
	volumeLoad int64
}

type gateway struct {
	*Gateway
	weight  int64
	site    int32
	portals []portal
	pool    *pool
	// pathLoad is the gateway's part of the load of the targets that it exports, ownerLoad that of the volumes that it owns. Both
	// include OtherLoad, in commands per second.
	pathLoad, ownerLoad int64
}

type portal struct {
	Portal
	place switchRef
}

// serves reports whether hosts reach anything through the gateway.
func (g *gateway) serves() bool { return g.Health != Dead && len(g.portals) > 0 }

// mayKeep reports whether the gateway keeps its paths and volumes.
func (g *gateway) mayKeep() bool {
	return g.serves() && (g.Health == Usable || g.Health == Cordoned)
}

func (g *gateway) usable() bool { return g.serves() && g.Health == Usable }

// pool is a gateway pool. A gateway's load is relative to the others of its pool.
type pool struct {
	name   string
	usable []int32
	// weight and load of all gateways that keep their paths and volumes.
	weight              int64
	pathLoad, ownerLoad int64
	// sites are the gateway sites of usable gateways, each with its gateways.
	sites map[int32][]int32
	order []int32
}

type host struct {
	*Host
	site   int32
	places []switchRef
}

type volume struct {
	*Volume
	load    int64
	targets []int32
	// present and owner are indices of gateways, or none. owner is the planned one.
	present, owner int32
	gain           float64
}

// none is the index of no object.
const none int32 = -1

func newPlanner(c Cluster) *planner {
	p := &planner{
		policy:   newPolicy(c.Policy),
		byNumber: map[uint32]int32{},
		pools:    map[string]*pool{},
		floors:   map[floorKey]score{},
		trials:   maxTrials,
	}
	p.movesLeft = p.policy.maxMoves
	p.net = newNetwork(c.Fabrics, &p.problems)
	p.indexGateways(c.Gateways)
	p.indexHosts(c.Hosts)
	p.indexVolumes(c.Volumes, c.Targets)
	p.indexTargets(c.Targets)
	p.sumLoads()
	return p
}

func newPolicy(in Policy) policy {
	fraction := func(permille, otherwise int32) float64 {
		if permille == 0 {
			permille = otherwise
		}
		return float64(min(max(permille, 1), 1000)) / 1000
	}
	out := policy{
		maxMoves:   in.MaxMoves,
		hysteresis: fraction(in.HysteresisPermille, DefaultHysteresisPermille),
		hop:        fraction(in.HopPermille, DefaultHopPermille),
		volumeLoad: int64(min(in.VolumeLoad, 1<<40)),
	}
	if out.maxMoves == 0 {
		out.maxMoves = DefaultMaxMoves
	}
	if out.volumeLoad == 0 {
		out.volumeLoad = DefaultVolumeLoad
	}
	return out
}

// sortByName sorts by name, and objects of the same name by their contents, so that the selection among duplicates does not
// depend on the order of the input.
func sortByName[T any](objects []T, name func(*T) string) {
	slices.SortFunc(objects, func(a, b T) int {
		if c := strings.Compare(name(&a), name(&b)); c != 0 {
			return c
		}
		return strings.Compare(contents(a), contents(b))
	})
}

// contents returns an object as text, which does not depend on the order of its lists.
func contents(object any) string {
	words := strings.FieldsFunc(fmt.Sprintf("%+v", object), func(r rune) bool {
		return strings.ContainsRune(" []{}", r)
	})
	slices.Sort(words)
	return strings.Join(words, " ")
}

func duplicate(problems *problems, kind model.Kind, name string) {
	problems.add(kind, name, ReasonDuplicate, "it is given twice", "one is left out: remove it")
}

func (p *planner) indexGateways(in []Gateway) {
	sorted := slices.Clone(in)
	slices.SortFunc(sorted, func(a, b Gateway) int {
		if c := cmp.Compare(a.Number, b.Number); c != 0 {
			return c
		}
		return strings.Compare(contents(a), contents(b))
	})
	for i := range sorted {
		g := &sorted[i]
		if _, taken := p.byNumber[g.Number]; taken {
			duplicate(&p.problems, model.KindGateway, g.Name)
			continue
		}
		if g.Number == 0 || g.Number > model.MaxGatewayNumber {
			p.problems.add(model.KindGateway, g.Name, ReasonOutOfRange,
				fmt.Sprintf("its number is %d; 1 to %d are possible", g.Number, model.MaxGatewayNumber),
				"it is left out: wait until it is given a number")
			continue
		}
		p.byNumber[g.Number] = int32(len(p.gateways))
		p.gateways = append(p.gateways, p.newGateway(g, len(sorted)))
	}
	for i := range p.gateways {
		p.enterPool(int32(i))
	}
	for _, pool := range p.pools {
		for _, g := range pool.usable {
			site := p.gateways[g].site
			if pool.sites[site] == nil {
				pool.order = append(pool.order, site)
			}
			pool.sites[site] = append(pool.sites[site], g)
		}
	}
}

func (p *planner) newGateway(in *Gateway, count int) gateway {
	g := gateway{Gateway: in, weight: int64(in.Weight)}
	if in.Weight < 1 || in.Weight > model.MaxWeight {
		g.weight = int64(min(in.Weight, model.MaxWeight))
		if in.Weight < 1 {
			g.weight = model.DefaultWeight
		}
		p.problems.add(model.KindGateway, in.Name, ReasonOutOfRange,
			fmt.Sprintf("its weight is %d; 1 to %d are possible", in.Weight, model.MaxWeight),
			fmt.Sprintf("it counts as %d: set spec.weight; cordon what is to take nothing", g.weight))
	}
	if in.Health > Dead {
		p.problems.add(model.KindGateway, in.Name, ReasonOutOfRange,
			fmt.Sprintf("its health is %d, which is none", in.Health),
			"it counts as cordoned: report its health")
		in.Health = Cordoned
	}
	var places []switchRef
	for _, q := range in.Portals {
		at := p.net.findSwitch(q.Fabric, q.Switch, model.KindGateway, in.Name, &p.problems)
		places = append(places, at)
		g.portals = append(g.portals, portal{q, at})
	}
	slices.SortFunc(g.portals, func(a, b portal) int {
		return cmp.Or(cmp.Compare(a.Fabric, b.Fabric), cmp.Compare(a.Address, b.Address),
			cmp.Compare(a.PortalGroupTag, b.PortalGroupTag), cmp.Compare(a.Switch, b.Switch))
	})
	if len(places) == 0 {
		p.problems.add(model.KindGateway, in.Name, ReasonNoPortals, "it has no portals",
			"nothing is placed on it: give it a portal on each fabric of its pool")
	}
	slices.SortFunc(places, compareSwitches)
	g.site = p.net.gatewaySites.intern(slices.Compact(places))
	g.pathLoad = clampLoad(in.OtherLoad, count)
	g.ownerLoad = g.pathLoad
	return g
}

// clampLoad bounds a load so that sums over count objects, and over as many products of them, cannot overflow.
func clampLoad(load uint64, count int) int64 {
	return int64(min(load, 1<<40, uint64(1)<<60/uint64(count+1)))
}

func (p *planner) enterPool(i int32) {
	g := &p.gateways[i]
	g.pool = p.pools[g.Pool]
	if g.pool == nil {
		g.pool = &pool{name: g.Pool, sites: map[int32][]int32{}}
		p.pools[g.Pool] = g.pool
	}
	if g.mayKeep() {
		g.pool.weight += g.weight
		g.pool.pathLoad += g.pathLoad
		g.pool.ownerLoad += g.ownerLoad
	}
	if g.usable() {
		g.pool.usable = append(g.pool.usable, i)
	}
}

func (p *planner) indexHosts(in []Host) {
	sorted := slices.Clone(in)
	sortByName(sorted, func(h *Host) string { return h.Name })
	p.hostIndex = make(map[string]int32, len(sorted))
	for i := range sorted {
		h := &sorted[i]
		if _, taken := p.hostIndex[h.Name]; taken {
			duplicate(&p.problems, model.KindHost, h.Name)
			continue
		}
		var places []switchRef
		for _, a := range h.Switches {
			places = append(places, p.net.findSwitch(a.Fabric, a.Switch, model.KindHost, h.Name, &p.problems))
		}
		slices.SortFunc(places, compareSwitches)
		places = slices.Compact(places)
		distinct := slices.CompactFunc(places, func(a, b switchRef) bool { return a.fabric == b.fabric })
		if len(distinct) < len(places) {
			p.problems.add(model.KindHost, h.Name, ReasonAmbiguousPosition,
				"it sits on two switches of one fabric",
				"the first counts: name one switch for each fabric in spec.switches")
		}
		p.hostIndex[h.Name] = int32(len(p.hosts))
		p.hosts = append(p.hosts, host{h, p.net.hostSites.intern(distinct), distinct})
	}
}
