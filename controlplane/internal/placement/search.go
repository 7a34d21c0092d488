package placement

import (
	"cmp"
	"slices"
)

// Bounds of the exact search, in scored path sets: for a plan, and for a target. A target's bound covers all pairs of 200
// gateways, or all triples of 49, that differ in place and node.
const (
	maxTrials       = 500_000
	maxTargetTrials = 20_000
)

// makeRedundant searches for better path sets if single failures remain that another set could avoid. Choosing one gateway after
// the other is exact if it reaches the floor, which is nearly always the case. Otherwise whole sets are compared.
func (p *planner) makeRedundant() {
	for i := range p.targets {
		t := &p.targets[i]
		// One new gateway was chosen among all.
		exact := len(t.set) == 1 && len(t.nodes) == 0 && !slices.Contains(t.present, t.set[0])
		if len(t.set) == 0 || exact || p.trials <= 0 {
			continue
		}
		present := p.score(t, t.set)
		if present.redundant() || present.compare(p.floor(t, len(t.set))) <= 0 {
			continue
		}
		s := search{planner: p, target: t, best: present, left: min(maxTargetTrials, p.trials)}
		s.begin()
		p.trials -= min(maxTargetTrials, p.trials) - s.left
		if s.found != nil && p.useMoves(p.disturbed(t, s.found)) {
			p.replaceSet(t, s.found)
			t.improved = true
		}
	}
}

// disturbed counts the present paths that a new path set drops, and the changes of owner that follow.
func (p *planner) disturbed(t *target, set []int32) int {
	count := 0
	for _, g := range t.set {
		if !slices.Contains(set, g) && slices.Contains(t.present, g) {
			count += 1 + p.owned(t, g)
		}
	}
	return count
}

// useMoves subtracts moves from the remaining number. The first replacement is always allowed: otherwise a target with many volumes
// would never move.
func (p *planner) useMoves(moves int) bool {
	untouched := p.movesLeft == p.policy.maxMoves && p.movesLeft > 0
	if moves > 0 && moves > p.movesLeft && !untouched {
		return false
	}
	p.movesLeft -= moves
	return true
}

func (p *planner) replaceSet(t *target, set []int32) {
	for _, g := range slices.Clone(t.set) {
		if !slices.Contains(set, g) {
			p.removePath(t, g)
		}
	}
	for _, g := range set {
		if !t.has(g) {
			p.addPath(t, g)
		}
	}
	slices.Sort(t.set)
}

// search compares path sets of the target's size: by score, then by the number of present gateways that stay.
type search struct {
	*planner
	target     *target
	candidates []int32
	left       int
	best       score
	changes    int
	found      []int32
	floor      score
	chosen     []int32
}

func (s *search) begin() {
	s.floor = s.planner.floor(s.target, len(s.target.set))
	s.candidates = s.representatives()
	s.extend(0)
}

// representatives returns gateways that differ in the properties on which redundancy depends, and the members of the set. Of the
// gateways at one site, as many as there are paths are sufficient: one for each node, then a second one.
func (s *search) representatives() []int32 {
	t, p := s.target, s.planner
	chosen := slices.Clone(t.set)
	for _, site := range t.pool.order {
		members := slices.Clone(t.pool.sites[site])
		slices.SortStableFunc(members, func(a, b int32) int {
			ga, gb := &p.gateways[a], &p.gateways[b]
			return cmp.Compare(float64(ga.pathLoad)/p.pathFair(ga), float64(gb.pathLoad)/p.pathFair(gb))
		})
		onNode := map[string]int{}
		for _, g := range members {
			node := p.gateways[g].Node
			local := slices.Contains(t.nodes, node)
			if onNode[node] < 2 && (local || len(onNode) < t.want || onNode[node] == 1) {
				onNode[node]++
				if !t.has(g) {
					chosen = append(chosen, g)
				}
			}
		}
	}
	return chosen
}

// extend tries every continuation with the candidates from an index. It reports whether the search continues.
func (s *search) extend(from int) bool {
	if len(s.chosen) == len(s.target.set) || from == len(s.candidates) {
		return s.try()
	}
	for i := from; i < len(s.candidates); i++ {
		s.chosen = append(s.chosen, s.candidates[i])
		goOn := s.extend(i + 1)
		s.chosen = s.chosen[:len(s.chosen)-1]
		if !goOn {
			return false
		}
	}
	return true
}

func (s *search) try() bool {
	if s.left--; s.left < 0 {
		s.left = 0
		return false
	}
	if len(s.chosen) < len(s.target.set) || !s.covers() {
		return true
	}
	score := s.planner.score(s.target, s.chosen)
	changes := 0
	for _, g := range s.target.set {
		if !slices.Contains(s.chosen, g) {
			changes++
		}
	}
	c := score.compare(s.best)
	if c < 0 || c == 0 && s.found != nil && changes < s.changes {
		s.best, s.changes, s.found = score, changes, slices.Clone(s.chosen)
	}
	return s.found == nil || s.changes > 1 || s.best != s.floor
}

// covers reports whether every node of local volumes keeps its gateway.
func (s *search) covers() bool {
	on := func(set []int32, node string) bool {
		return slices.ContainsFunc(set, func(g int32) bool { return s.gateways[g].Node == node })
	}
	for _, node := range s.target.nodes {
		if on(s.target.set, node) && !on(s.chosen, node) {
			return false
		}
	}
	return true
}
