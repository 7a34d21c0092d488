package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// rank is the position of a kind of failure domain in a score.
type rank int

const (
	rankNone rank = iota
	rankGateway
	rankNode
	rankFabric
	rankSwitch
	rankLink
	ranks
)

var kindOf = [ranks]DomainKind{
	DomainNone, DomainGateway, DomainNode, DomainFabric, DomainSwitch, DomainLink,
}

// score counts, by kind, pairs of a host and a failure domain that takes all its paths. A smaller score is better, and a worse
// kind outweighs any number of the following kinds. Another gateway never increases it.
type score [ranks]int32

func (s score) compare(other score) int { return slices.Compare(s[:], other[:]) }

func (s score) redundant() bool { return s == score{} }

func (s *score) add(other score, times int32) {
	for i := range s {
		s[i] += other[i] * times
	}
}

// score returns the score of a path set for a target's hosts. Dead gateways do not count.
func (p *planner) score(t *target, set []int32) score {
	var sum score
	for _, s := range t.sites {
		sum.add(p.siteScore(s.site, set, nil), s.count)
	}
	return sum
}

// found is called for a single failure domain, with the index of its gateway, node, fabric, switch or link.
type found func(kind rank, fabric, index int32)

// siteScore finds the single failure domains of a host at a site.
func (p *planner) siteScore(site int32, set []int32, tell found) score {
	var s score
	paths := p.net.pathsOf(site)
	reached, oneNode, fabric, first := 0, true, nowhere, none
	for _, i := range set {
		g := &p.gateways[i]
		if !g.serves() || paths.fabric[g.site] == nowhere {
			continue
		}
		reached++
		if first == none {
			first = i
		} else if g.Node != p.gateways[first].Node {
			oneNode = false
		}
		fabric = join(fabric, paths.fabric[g.site])
	}
	note := func(kind rank, at, index int32) {
		s[kind]++
		if tell != nil {
			tell(kind, at, index)
		}
	}
	if reached == 0 {
		note(rankNone, none, none)
		return s
	}
	if reached == 1 {
		note(rankGateway, none, first)
	}
	if oneNode {
		note(rankNode, none, first)
	}
	if fabric >= 0 {
		note(rankFabric, fabric, fabric)
		p.cuts(site, set, fabric, note)
	}
	return s
}

// cuts finds the switches and links of the only fabric that take all paths. For a portal with an unknown switch none can be
// named; the fabric itself has been reported already.
func (p *planner) cuts(site int32, set []int32, fabric int32, note found) {
	from := unknown
	for _, at := range p.net.hostSites.places[site] {
		if at.fabric == fabric {
			from = at.at
		}
	}
	graph := p.net.graphs[fabric]
	var buffer [16]int32
	portals := buffer[:0]
	for _, i := range set {
		g := &p.gateways[i]
		if !g.serves() {
			continue
		}
		for _, at := range p.net.gatewaySites.places[g.site] {
			if at.fabric == fabric && graph.distance(from, at.at) != apart &&
				!slices.Contains(portals, at.at) {
				portals = append(portals, at.at)
			}
		}
	}
	if from != unknown {
		note(rankSwitch, fabric, from)
	}
	if slices.Contains(portals, unknown) {
		return
	}
	if len(portals) == 1 && portals[0] != from {
		note(rankSwitch, fabric, portals[0])
	}
	if from == unknown {
		return
	}
	for _, c := range graph.cutSwitches {
		if c.id != from && (len(portals) > 1 || c.id != portals[0]) && separates(c, from, portals) {
			note(rankSwitch, fabric, c.id)
		}
	}
	for _, c := range graph.bridges {
		if separates(c, from, portals) {
			note(rankLink, fabric, c.id)
		}
	}
}

// separates reports whether no path to the portals remains; a portal at the failed switch is lost.
func separates(c cut, from int32, portals []int32) bool {
	for _, to := range portals {
		if c.part[to] == c.part[from] {
			return false
		}
	}
	return true
}

type floorKey struct {
	pool *pool
	site int32
}

// floor returns a lower bound of the score of all path sets: the score of all gateways of the pool together, and with fewer than
// two paths that of a single gateway.
func (p *planner) floor(t *target, paths int) score {
	var sum score
	for _, s := range t.sites {
		key := floorKey{t.pool, s.site}
		best, known := p.floors[key]
		if !known {
			best = p.siteScore(s.site, t.pool.usable, nil)
			p.floors[key] = best
		}
		if paths == 1 && best[rankNone] == 0 {
			best[rankGateway], best[rankNode] = 1, 1
		}
		sum.add(best, s.count)
	}
	return sum
}

// single lists the failure domains that take all paths of some hosts, worst first.
func (p *planner) single(t *target) []FailureDomain {
	var domains []FailureDomain
	for _, s := range t.sites {
		p.siteScore(s.site, t.set, func(kind rank, fabric, index int32) {
			name := p.domainName(kind, fabric, index)
			at := slices.IndexFunc(domains, func(d FailureDomain) bool {
				return d.Kind == kindOf[kind] && d.Name == name
			})
			if at < 0 {
				at = len(domains)
				domains = append(domains, FailureDomain{Kind: kindOf[kind], Name: name})
			}
			domains[at].Hosts += int(s.count)
		})
	}
	slices.SortFunc(domains, func(a, b FailureDomain) int {
		return cmp.Or(cmp.Compare(slices.Index(kindOf[:], a.Kind), slices.Index(kindOf[:], b.Kind)),
			-cmp.Compare(a.Hosts, b.Hosts), cmp.Compare(a.Name, b.Name))
	})
	return domains
}

func (p *planner) domainName(kind rank, fabric, index int32) string {
	switch kind {
	case rankGateway:
		return gatewayName(p.gateways[index].Gateway)
	case rankNode:
		return p.gateways[index].Node
	case rankFabric:
		return p.net.graphs[fabric].name
	case rankSwitch:
		return p.net.graphs[fabric].switchName(index)
	case rankLink:
		return p.net.graphs[fabric].linkName(index)
	}
	return ""
}

// gatewayName returns a gateway's name for messages.
func gatewayName(g *Gateway) string {
	if g.Name != "" {
		return g.Name
	}
	return fmt.Sprint(g.Number)
}
