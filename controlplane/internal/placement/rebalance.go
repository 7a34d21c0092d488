package placement

import (
	"cmp"
	"slices"
)

const (
	// maxRounds bounds the rounds of rebalancing. Each move reduces the sum of squared loads and hops by at least the hysteresis,
	// so rebalancing ends by itself, usually after two or three rounds.
	maxRounds = 8
	// freeFraction is the fraction of the hysteresis that a move must gain if this plan assigns the object anyway.
	freeFraction = 0.125
	// nearlyBest is the fraction of the best known benefit that a move must have to be made next. Gains change with every move,
	// and only recomputed ones are exact.
	nearlyBest = 0.9
	// nearerPart is the fraction of a gain in hops that counts for a present assignment. With the full gain, a move that frees
	// room near some hosts would attract others, and these again others: a joining gateway caused moves of twice its fair share.
	nearerPart = 1.0 / 3
)

// shift is a change with a gain: of a target's path, or of a volume's owner.
type shift struct {
	// gain in fair shares. It must exceed the hysteresis, regardless of the moved load.
	gain float64
	// benefit is the gain times the moved load, also in fair shares. The greatest come first; otherwise a joining gateway would
	// be filled with many small volumes.
	benefit  float64
	what     int32
	from, to int32
}

func compareShifts(a, b shift) int {
	return cmp.Or(cmp.Compare(a.benefit, b.benefit), -cmp.Compare(a.what, b.what))
}

// bestFirst makes the shifts with the greatest gain, and recomputes each before it is made. It reports whether it made any.
func bestFirst(queue []shift, again func(what int32) (shift, bool), do func(shift) bool) bool {
	slices.SortFunc(queue, compareShifts)
	made := false
	for len(queue) > 0 {
		what := queue[len(queue)-1].what
		queue = queue[:len(queue)-1]
		now, worth := again(what)
		if !worth {
			continue
		}
		if last := len(queue) - 1; last >= 0 && now.benefit < nearlyBest*queue[last].benefit {
			at, _ := slices.BinarySearchFunc(queue, now, compareShifts)
			queue = slices.Insert(queue, at, now)
			continue
		}
		made = do(now) || made
	}
	return made
}

// rebalancePaths moves paths to gateways that carry less load or are nearer, without any loss of redundancy.
func (p *planner) rebalancePaths() {
	for range maxRounds {
		swept := p.shiftNewPaths()
		if moved := p.movePresentPaths(); !moved && !swept {
			return
		}
	}
}

// shiftNewPaths moves paths that are new in this plan: no host uses them yet.
func (p *planner) shiftNewPaths() bool {
	swept := false
	low := p.lowest()
	for i := range p.targets {
		for {
			s, worth := p.pathShift(int32(i), low, false)
			if !worth {
				break
			}
			p.shiftPath(s)
			swept = true
		}
	}
	return swept
}

func (p *planner) movePresentPaths() bool {
	if p.movesLeft <= 0 {
		return false
	}
	var queue []shift
	low := p.lowest()
	for i := range p.targets {
		if s, worth := p.pathShift(int32(i), low, true); worth {
			queue = append(queue, s)
		}
	}
	again := func(what int32) (shift, bool) {
		if p.movesLeft <= 0 {
			return shift{}, false
		}
		return p.pathShift(what, nil, true)
	}
	return bestFirst(queue, again, func(s shift) bool {
		t := &p.targets[s.what]
		if !p.useMoves(1 + p.owned(t, s.from)) {
			return false
		}
		t.gain = max(t.gain, s.benefit)
		p.shiftPath(s)
		return true
	})
}

func (p *planner) shiftPath(s shift) {
	t := &p.targets[s.what]
	p.removePath(t, s.from)
	p.addPath(t, s.to)
	slices.Sort(t.set)
}

// lowest returns, for each pool and site, a lower bound of the loads of its gateways, in fair shares.
func (p *planner) lowest() map[*pool][]float64 {
	low := make(map[*pool][]float64, len(p.pools))
	for _, pool := range p.pools {
		for _, site := range pool.order {
			least := -1.0
			for _, i := range pool.sites[site] {
				g := &p.gateways[i]
				if u := float64(g.pathLoad) / p.pathFair(g); least < 0 || u < least {
					least = u
				}
			}
			low[pool] = append(low[pool], least)
		}
	}
	return low
}

// pathShift returns the replacement with the greatest gain among the target's present paths, or among its new ones. Targets that
// share volumes are not changed, because their path sets must have a common gateway. low, if given, excludes gateways that cannot
// gain enough.
func (p *planner) pathShift(what int32, low map[*pool][]float64, present bool) (shift, bool) {
	t := &p.targets[what]
	best := shift{gain: p.threshold(present), what: what, from: none}
	if len(t.others) > 0 {
		return best, false
	}
	for _, from := range t.set {
		g := &p.gateways[from]
		if slices.Contains(t.present, from) != present || !g.usable() || g.pool != t.pool {
			continue
		}
		cost := loadCost(g.pathLoad-t.share, t.share, p.pathFair(g))
		for i, site := range t.pool.order {
			nearer := p.nearer(t.hops[g.site], t.hops[site], present)
			if low != nil && cost+nearer-low[t.pool][i] <= best.gain {
				continue
			}
			refused := false
			for _, to := range t.pool.sites[site] {
				h := &p.gateways[to]
				gain := cost + nearer - loadCost(h.pathLoad, t.share, p.pathFair(h))
				if gain <= best.gain || refused && p.newNode(t, h) {
					continue
				}
				if !p.mayReplace(t, from, to) {
					// All gateways of this site whose nodes are new to the path set will be refused, too.
					refused = refused || p.newNode(t, h)
					continue
				}
				best.gain, best.from, best.to = gain, from, to
				best.benefit = gain * float64(t.share) / p.pathFair(g)
			}
		}
	}
	return best, best.from != none
}

// nearer returns the gain of a change of hops.
func (p *planner) nearer(from, to int64, present bool) float64 {
	gain := p.hopCost(from) - p.hopCost(to)
	if present && gain > 0 {
		return gain * nearerPart
	}
	return gain
}

// threshold returns the minimum gain of a shift.
func (p *planner) threshold(present bool) float64 {
	if present {
		return p.policy.hysteresis
	}
	return p.policy.hysteresis * freeFraction
}

func (p *planner) newNode(t *target, g *gateway) bool {
	return !slices.ContainsFunc(t.set, func(i int32) bool { return p.gateways[i].Node == g.Node })
}

func (p *planner) mayReplace(t *target, from, to int32) bool {
	if t.has(to) || p.gateways[from].Node != p.gateways[to].Node && p.needed(t, from) {
		return false
	}
	next := slices.Clone(t.set)
	next[slices.Index(next, from)] = to
	return p.score(t, next).compare(p.score(t, t.set)) <= 0
}
