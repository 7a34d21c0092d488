package placement

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// candidates returns the members of the volume's path sets that reach its data.
func (p *planner) candidates(v *volume, buffer []int32) []int32 {
	buffer = buffer[:0]
	if len(v.targets) == 0 || v.PoolKind != LocalPool && v.PoolKind != RBDPool {
		return buffer
	}
	for _, g := range p.targets[v.targets[0]].set {
		if !p.gateways[g].serves() || v.PoolKind == LocalPool && p.gateways[g].Node != v.Node {
			continue
		}
		buffer = append(buffer, g)
	}
	if len(v.targets) == 1 {
		return buffer
	}
	common := slices.DeleteFunc(slices.Clone(buffer), func(g int32) bool {
		return slices.ContainsFunc(v.targets[1:], func(t int32) bool { return !p.targets[t].has(g) })
	})
	if len(common) > 0 {
		return common
	}
	return buffer
}

func (p *planner) own(v *volume, g int32) {
	if v.owner != none {
		p.gateways[v.owner].ownerLoad -= v.load
	}
	v.owner = g
	p.gateways[g].ownerLoad += v.load
}

// keepOwners keeps every owner that may stay.
func (p *planner) keepOwners() {
	var buffer []int32
	for i := range p.volumes {
		v := &p.volumes[i]
		if v.present == none || !p.gateways[v.present].mayKeep() {
			continue
		}
		buffer = p.candidates(v, buffer)
		if slices.Contains(buffer, v.present) {
			p.own(v, v.present)
		}
	}
}

// chooseOwners assigns an owner to every other exported volume, those with the highest load first.
func (p *planner) chooseOwners() {
	var order []int32
	for i := range p.volumes {
		if v := &p.volumes[i]; v.owner == none && len(v.targets) > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return -cmp.Compare(p.volumes[a].load, p.volumes[b].load)
	})
	var buffer []int32
	for _, i := range order {
		v := &p.volumes[i]
		buffer = p.candidates(v, buffer)
		p.reportMeeting(v, buffer)
		if g := p.cheapest(v, buffer); g != none {
			p.own(v, g)
			continue
		}
		p.chooseLastResort(v, buffer)
	}
}

// cheapest returns the usable gateway that owns the volume at the least cost.
func (p *planner) cheapest(v *volume, candidates []int32) int32 {
	best, bestCost := none, 0.0
	for _, i := range candidates {
		g := &p.gateways[i]
		if !g.usable() {
			continue
		}
		cost := p.cost(g.ownerLoad, v.load, p.ownerFair(g), p.ownerHops(v, g))
		if best == none || cost < bestCost {
			best, bestCost = i, cost
		}
	}
	return best
}

func (p *planner) ownerHops(v *volume, g *gateway) int64 {
	return p.targets[v.targets[0]].hops[g.site]
}

// chooseLastResort selects a gateway that should receive nothing, because otherwise the volume would be unavailable: the present
// owner if it still serves, else a cordoned one, else a draining one.
func (p *planner) chooseLastResort(v *volume, candidates []int32) {
	if len(candidates) == 0 {
		if v.PoolKind == LocalPool || v.PoolKind == RBDPool {
			p.problems.add(model.KindVolume, v.Name, ReasonNoOwner,
				"no gateway that serves can own it"+v.locationText(),
				"it is unavailable: bring such a gateway back")
		}
		return
	}
	best := slices.MinFunc(candidates, func(a, b int32) int {
		return cmp.Compare(p.reluctance(v, a), p.reluctance(v, b))
	})
	p.problems.add(model.KindVolume, v.Name, ReasonDrainBlocked,
		"only cordoned or draining gateways can own it"+v.locationText(),
		fmt.Sprintf("gateway %s owns it: add a usable gateway to the path set",
			gatewayName(p.gateways[best].Gateway)))
	p.own(v, best)
}

func (p *planner) reluctance(v *volume, g int32) int {
	switch {
	case g == v.present:
		return 0
	case p.gateways[g].mayKeep():
		return 1
	}
	return 2
}

func (v *volume) locationText() string {
	if v.PoolKind == LocalPool {
		return fmt.Sprintf(": its data is on node %q", v.Node)
	}
	return ""
}

// reportMeeting reports a volume of several targets whose path sets share no gateway.
func (p *planner) reportMeeting(v *volume, candidates []int32) {
	for _, t := range v.targets[1:] {
		other := &p.targets[t]
		if len(candidates) == 0 || slices.ContainsFunc(candidates, other.has) {
			continue
		}
		first := p.targets[v.targets[0]].Name
		p.problems.add(model.KindVolume, v.Name, ReasonPathSetsDontMeet,
			fmt.Sprintf("targets %s and %s export it, and their path sets share no gateway that can own it",
				first, other.Name),
			fmt.Sprintf("its owner is in the path set of %s: map it in one target", first))
	}
}

// rebalanceOwners moves volumes within their path sets.
func (p *planner) rebalanceOwners() {
	for range maxRounds {
		swept := p.shiftNewOwners()
		if moved := p.movePresentOwners(); !moved && !swept {
			return
		}
	}
}

// shiftNewOwners moves volumes that get an owner in this plan anyway.
func (p *planner) shiftNewOwners() bool {
	swept := false
	for i := range p.volumes {
		if s, worth := p.ownerShift(int32(i), false); worth {
			p.own(&p.volumes[i], s.to)
			swept = true
		}
	}
	return swept
}

func (p *planner) movePresentOwners() bool {
	var queue []shift
	for i := range p.volumes {
		if s, worth := p.ownerShift(int32(i), true); worth {
			queue = append(queue, s)
		}
	}
	again := func(what int32) (shift, bool) {
		if p.movesLeft <= 0 {
			return shift{}, false
		}
		return p.ownerShift(what, true)
	}
	return bestFirst(queue, again, func(s shift) bool {
		if !p.useMoves(1) {
			return false
		}
		v := &p.volumes[s.what]
		v.gain = s.benefit
		p.own(v, s.to)
		return true
	})
}

// ownerShift returns the owner with the greatest gain over the planned one, if the planned one is the present owner (present), or
// is new (not present).
func (p *planner) ownerShift(what int32, present bool) (shift, bool) {
	v := &p.volumes[what]
	best := shift{gain: p.threshold(present), what: what, from: v.owner, to: none}
	if v.owner == none || (v.owner == v.present) != present || !p.gateways[v.owner].usable() {
		return best, false
	}
	g := &p.gateways[v.owner]
	cost := loadCost(g.ownerLoad-v.load, v.load, p.ownerFair(g))
	var buffer [model.MaxPaths]int32
	for _, to := range p.candidates(v, buffer[:]) {
		h := &p.gateways[to]
		if to == v.owner || !h.usable() {
			continue
		}
		nearer := p.nearer(p.ownerHops(v, g), p.ownerHops(v, h), present)
		if gain := cost + nearer - loadCost(h.ownerLoad, v.load, p.ownerFair(h)); gain > best.gain {
			best.gain, best.to = gain, to
			best.benefit = gain * float64(v.load) / p.ownerFair(g)
		}
	}
	return best, best.to != none
}
