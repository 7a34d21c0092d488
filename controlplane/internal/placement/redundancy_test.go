package placement

import (
	"slices"
	"testing"
)

// bruteScore counts single failures by removing each element and searching for a remaining path. It uses neither cuts, bridges
// nor sites.
func bruteScore(p *planner, t *target, set []int32) score {
	var sum score
	hosts := make([][]switchRef, 0, len(t.hosts))
	for _, h := range t.hosts {
		hosts = append(hosts, p.hosts[h].places)
	}
	if len(hosts) == 0 {
		hosts = append(hosts, nil)
	}
	for _, places := range hosts {
		sum.add(bruteHost(p, places, set), 1)
	}
	return sum
}

func bruteHost(p *planner, host []switchRef, set []int32) score {
	var s score
	all := failure{switchOf: -1, linkOf: -1, fabric: -1}
	if !survives(p, host, set, all) {
		s[rankNone]++
		return s
	}
	var nodes []string
	for _, g := range set {
		f := all
		f.gateway = func(i int32) bool { return i == g }
		if !survives(p, host, set, f) {
			s[rankGateway]++
		}
		node := p.gateways[g].Node
		f.gateway = func(i int32) bool { return p.gateways[i].Node == node }
		if !slices.Contains(nodes, node) && !survives(p, host, set, f) {
			s[rankNode]++
		}
		nodes = append(nodes, node)
	}
	for f, graph := range p.net.graphs {
		if !survives(p, host, set, failure{fabric: f, switchOf: -1, linkOf: -1}) {
			s[rankFabric]++
		}
		for i := range graph.switches {
			if !survives(p, host, set, failure{fabric: -1, switchOf: f, index: i, linkOf: -1}) {
				s[rankSwitch]++
			}
		}
		for i := range graph.links {
			if !survives(p, host, set, failure{fabric: -1, switchOf: -1, linkOf: f, index: i}) {
				s[rankLink]++
			}
		}
	}
	return s
}

// failure is of gateways, or of a fabric, a switch or a link, by the index of its fabric.
type failure struct {
	gateway                  func(int32) bool
	fabric, switchOf, linkOf int
	index                    int
}

// survives reports whether the host reaches a gateway of the set after a failure. A host whose place is unknown reaches every
// remaining portal.
func survives(p *planner, host []switchRef, set []int32, f failure) bool {
	for _, i := range set {
		g := &p.gateways[i]
		if !g.serves() || f.gateway != nil && f.gateway(i) {
			continue
		}
		for _, to := range g.portals {
			if len(host) == 0 && stands(f, to.place) {
				return true
			}
			for _, from := range host {
				if from.fabric == to.place.fabric && stands(f, from) && stands(f, to.place) &&
					joined(p, from, to.place, f) {
					return true
				}
			}
		}
	}
	return false
}

func stands(f failure, at switchRef) bool {
	return f.fabric != int(at.fabric) && (f.switchOf != int(at.fabric) || f.index != int(at.at))
}

func joined(p *planner, a, b switchRef, f failure) bool {
	if a.at == unknown || b.at == unknown {
		return true
	}
	withoutSwitch, withoutLink := -1, -1
	if f.switchOf == int(a.fabric) {
		withoutSwitch = f.index
	}
	if f.linkOf == int(a.fabric) {
		withoutLink = f.index
	}
	return floyd(p.net.graphs[a.fabric], withoutSwitch, withoutLink)[a.at][b.at] != apart
}

// eachSet calls a function with every set of this number of candidates.
func eachSet(candidates []int32, count int, with func([]int32)) {
	var extend func(from int, chosen []int32)
	extend = func(from int, chosen []int32) {
		if len(chosen) == count {
			with(chosen)
			return
		}
		for i := from; i < len(candidates); i++ {
			extend(i+1, append(slices.Clip(chosen), candidates[i]))
		}
	}
	extend(0, nil)
}

func TestTheScoreIsThatOfTakingEachFailureDomainAway(t *testing.T) {
	for seed := range uint64(150) {
		p := newPlanner(randomCluster(seed, tiny))
		for i := range p.targets {
			eachSet(p.targets[i].pool.usable, min(2, len(p.targets[i].pool.usable)), func(set []int32) {
				got, want := p.score(&p.targets[i], set), bruteScore(p, &p.targets[i], set)
				if got != want {
					t.Fatalf("seed %d, target %d, set %v: score %v, want %v", seed, i, set, got, want)
				}
			})
		}
	}
}

func TestPathsAreAsRedundantAsTheBestOfAllPathSets(t *testing.T) {
	compared := 0
	for seed := range uint64(600) {
		c := randomCluster(seed, tiny)
		for i := range c.Targets {
			c.Targets[i].PathSet = c.Targets[i].PathSet[:min(len(c.Targets[i].PathSet), int(seed%2)*3)]
		}
		c.Policy.MaxMoves = 1 << 30
		a := Plan(c)
		p := newPlanner(c)
		for i := range p.targets {
			target := &p.targets[i]
			if len(target.pool.usable) < target.want {
				continue
			}
			best, found := score{}, false
			eachSet(target.pool.usable, target.want, func(set []int32) {
				on := func(node string) bool {
					return slices.ContainsFunc(set, func(g int32) bool { return p.gateways[g].Node == node })
				}
				for _, node := range target.nodes {
					if !on(node) {
						return
					}
				}
				if s := bruteScore(p, target, set); !found || s.compare(best) < 0 {
					best, found = s, true
				}
			})
			if !found {
				continue // no usable gateway is on the node of local volumes
			}
			var set []int32
			for _, number := range a.Targets[i].Gateways {
				set = append(set, p.byNumber[number])
			}
			if got := bruteScore(p, target, set); got.compare(best) > 0 {
				t.Fatalf("seed %d, %s: path set %v scores %v, the best %v",
					seed, target.Name, a.Targets[i].Gateways, got, best)
			}
			if redundant := best == (score{}); a.Targets[i].Redundant != redundant && redundant {
				t.Fatalf("seed %d, %s: not redundant, but it could be", seed, target.Name)
			}
			compared++
		}
	}
	if compared < 300 {
		t.Errorf("only %d targets were compared", compared)
	}
}

func TestEverySingleFailureDomainThatIsLeftIsNamed(t *testing.T) {
	for seed := range uint64(200) {
		c := randomCluster(seed, tiny)
		a, p := Plan(c), newPlanner(c)
		for i := range p.targets {
			var set []int32
			for _, number := range a.Targets[i].Gateways {
				set = append(set, p.byNumber[number])
			}
			var named score
			for _, d := range a.Targets[i].Single {
				named[slices.Index(kindOf[:], d.Kind)] += int32(d.Hosts)
			}
			if want := bruteScore(p, &p.targets[i], set); named != want {
				t.Fatalf("seed %d: named %v, want counts %v", seed, a.Targets[i].Single, want)
			}
		}
	}
}
