package placement

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (p *planner) addPath(t *target, g int32) {
	t.set = append(t.set, g)
	p.gateways[g].pathLoad += t.share
}

func (p *planner) removePath(t *target, g int32) {
	at := slices.Index(t.set, g)
	t.set = slices.Delete(t.set, at, at+1)
	p.gateways[g].pathLoad -= t.share
}

// keepPresent keeps every path that may stay, so that later assignments consider all loads.
func (p *planner) keepPresent() {
	for i := range p.targets {
		t := &p.targets[i]
		for _, g := range t.present {
			if p.mayStay(t, g) {
				p.addPath(t, g)
			}
		}
	}
}

func (p *planner) mayStay(t *target, g int32) bool {
	return p.gateways[g].mayKeep() && p.gateways[g].pool == t.pool
}

// fillPathSets assigns the paths of every target, high loads first, because low loads then even out the rest.
func (p *planner) fillPathSets() {
	order := make([]int32, len(p.targets))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return -cmp.Compare(p.targets[a].share, p.targets[b].share)
	})
	for _, i := range order {
		t := &p.targets[i]
		p.fillNodes(t)
		p.trim(t)
		for len(t.set) < t.want {
			g := p.best(t, func(int32) bool { return true })
			if g == none {
				break
			}
			p.addPath(t, g)
		}
		p.pad(t)
	}
}

// fillNodes ensures that each node of the target's local volumes has a gateway in the path set.
func (p *planner) fillNodes(t *target) {
	for _, node := range t.nodes {
		here := func(g int32) bool { return p.gateways[g].Node == node }
		if slices.ContainsFunc(t.set, here) {
			continue
		}
		g := p.best(t, here)
		if g == none {
			g = p.leaving(t, here)
		}
		// A dead gateway stays, because the data is on its node, unless other volumes need a path.
		if g != none && (p.gateways[g].serves() || !p.hasShared(t)) {
			p.addPath(t, g)
			continue
		}
		p.problems.add(model.KindTarget, t.Name, ReasonNoGatewayOnNode,
			fmt.Sprintf("gateway pool %s has no usable gateway on node %q, where volumes of it are",
				t.GatewayPool, node),
			"those volumes have no owner: run a gateway of the pool on that node")
	}
}

// hasShared reports whether the target has volumes that every gateway reaches.
func (p *planner) hasShared(t *target) bool {
	return slices.ContainsFunc(t.volumes, func(v int32) bool {
		return p.volumes[v].PoolKind == RBDPool
	})
}

// leaving returns a present gateway that should leave but may stay if there is no other one; dead ones come last.
func (p *planner) leaving(t *target, wanted func(int32) bool) int32 {
	found := none
	for _, g := range t.present {
		if t.has(g) || !wanted(g) || len(p.gateways[g].portals) == 0 {
			continue
		}
		if p.gateways[g].serves() {
			return g
		}
		if found == none {
			found = g
		}
	}
	return found
}

// best returns the usable gateway that makes the path set most redundant. Among equal ones it prefers the gateway that meets the
// path sets of targets with the same volumes, then the cheapest.
func (p *planner) best(t *target, wanted func(int32) bool) int32 {
	floor := p.floor(t, len(t.set)+1)
	trial := append(slices.Clip(slices.Clone(t.set)), none)
	best, bestCost, bestMeets, bestScore := none, 0.0, 0, score{}
	scores := map[int32]score{}
	for _, i := range t.pool.usable {
		g := &p.gateways[i]
		cost := p.cost(g.pathLoad, t.share, p.pathFair(g), t.hops[g.site])
		meets := p.meets(t, i)
		worse := meets < bestMeets || meets == bestMeets && cost >= bestCost
		if best != none && bestScore == floor && worse || !wanted(i) || t.has(i) {
			continue
		}
		trial[len(trial)-1] = i
		score := p.trialScore(t, trial, scores)
		c := cmp.Or(score.compare(bestScore), cmp.Compare(bestMeets, meets), cmp.Compare(cost, bestCost))
		if best == none || c < 0 {
			best, bestCost, bestMeets, bestScore = i, cost, meets, score
		}
	}
	return best
}

// trialScore returns the score of a set whose last member is on trial. Gateways at one site are equivalent if their nodes are new
// to the set, so one of each site is computed.
func (p *planner) trialScore(t *target, trial []int32, scores map[int32]score) score {
	last := &p.gateways[trial[len(trial)-1]]
	if !p.newNode(t, last) {
		return p.score(t, trial)
	}
	known, ok := scores[last.site]
	if !ok {
		known = p.score(t, trial)
		scores[last.site] = known
	}
	return known
}

// meets counts the targets with the same volumes that a gateway exports.
func (p *planner) meets(t *target, g int32) int {
	count := 0
	for _, other := range t.others {
		if p.targets[other].has(g) {
			count++
		}
	}
	return count
}

// trim removes the gateways that contribute least, until the path set has the wanted size.
func (p *planner) trim(t *target) {
	for len(t.set) > t.want {
		worst, worstScore, worstOwned, worstCost := none, score{}, 0, 0.0
		for at, i := range t.set {
			if p.needed(t, i) {
				continue
			}
			g := &p.gateways[i]
			score := p.score(t, slices.Delete(slices.Clone(t.set), at, at+1))
			owned := p.owned(t, i)
			cost := p.cost(g.pathLoad, 0, p.pathFair(g), t.hops[g.site])
			c := cmp.Or(score.compare(worstScore), cmp.Compare(owned, worstOwned),
				cmp.Compare(worstCost, cost))
			if worst == none || c < 0 {
				worst, worstScore, worstOwned, worstCost = i, score, owned, cost
			}
		}
		if worst == none {
			return
		}
		p.removePath(t, worst)
	}
}

// needed reports whether a gateway is the only one of the path set on a node of local volumes.
func (p *planner) needed(t *target, g int32) bool {
	node := p.gateways[g].Node
	if !slices.Contains(t.nodes, node) {
		return false
	}
	return !slices.ContainsFunc(t.set, func(other int32) bool {
		return other != g && p.gateways[other].Node == node && p.gateways[other].serves()
	})
}

// owned counts the target's volumes that a gateway owns at present.
func (p *planner) owned(t *target, g int32) int {
	count := 0
	for _, v := range t.volumes {
		if p.volumes[v].present == g {
			count++
		}
	}
	return count
}

// pad keeps gateways that should leave if no other gateway can replace them: hosts never get fewer paths than wanted while a
// present gateway may still serve or return.
func (p *planner) pad(t *target) {
	for len(t.set) < t.want {
		g := p.leaving(t, func(int32) bool { return true })
		if g == none {
			break
		}
		p.addPath(t, g)
	}
	slices.Sort(t.set)
	serving := 0
	for _, g := range t.set {
		if p.mayStay(t, g) {
			serving++
		} else if p.gateways[g].serves() {
			p.problems.add(model.KindTarget, t.Name, ReasonDrainBlocked,
				fmt.Sprintf("gateway %s should leave its path set, and no other can take its place",
					gatewayName(p.gateways[g].Gateway)),
				p.drainRemedy(t, g))
		}
	}
	if serving < t.want {
		p.problems.add(model.KindTarget, t.Name, ReasonTooFewGateways,
			fmt.Sprintf("%d gateways can export it, and it is to have %d paths", serving, t.want),
			fmt.Sprintf("add gateways to pool %s, uncordon some, or lower spec.paths", t.GatewayPool))
	}
}

// drainRemedy returns the remedy: a gateway that local volumes need must be replaced on its node, any other one on any
// node.
func (p *planner) drainRemedy(t *target, g int32) string {
	if p.needed(t, g) {
		return fmt.Sprintf("it stays: add a usable gateway to pool %s on node %q", t.GatewayPool, p.gateways[g].Node)
	}
	return fmt.Sprintf("it stays: add a usable gateway to pool %s, or lower spec.paths", t.GatewayPool)
}
