package placement

import (
	"cmp"
	"math"
	"slices"
)

func (p *planner) numbers(set []int32) []uint32 {
	out := make([]uint32, len(set))
	for i, g := range set {
		out[i] = p.gateways[g].Number
	}
	return out
}

func (p *planner) targetPaths() []TargetPaths {
	out := make([]TargetPaths, 0, len(p.targets))
	for i := range p.targets {
		t := &p.targets[i]
		paths := TargetPaths{Target: t.Name, Gateways: p.numbers(t.set), Replaced: p.replaced(t)}
		for _, g := range t.set {
			if p.gateways[g].serves() {
				paths.Serving++
			}
		}
		paths.Redundant = p.score(t, t.set).redundant()
		if !paths.Redundant {
			paths.Single = p.single(t)
		}
		p.reportUnreachable(t, paths.Single)
		out = append(out, paths)
	}
	return out
}

// replaced pairs the gateways that leave a path set with the new ones, on the same node if there is such a pair.
func (p *planner) replaced(t *target) []Replacement {
	var gone, added []uint32
	now := p.numbers(t.set)
	for _, number := range slices.Compact(slices.Sorted(slices.Values(t.PathSet))) {
		if !slices.Contains(now, number) {
			gone = append(gone, number)
		}
	}
	for _, number := range now {
		if !slices.Contains(t.PathSet, number) {
			added = append(added, number)
		}
	}
	pairs := make([]Replacement, len(gone))
	for i, number := range gone {
		pairs[i].Gone = number
		at := slices.IndexFunc(added, func(by uint32) bool { return p.sameNode(number, by) })
		if at >= 0 {
			pairs[i].By = added[at]
			added = slices.Delete(added, at, at+1)
		}
	}
	for i := range pairs {
		if pairs[i].By == 0 && len(added) > 0 {
			pairs[i].By, added = added[0], added[1:]
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return pairs
}

func (p *planner) sameNode(a, b uint32) bool {
	i, knownA := p.byNumber[a]
	j, knownB := p.byNumber[b]
	return knownA && knownB && p.gateways[i].Node == p.gateways[j].Node
}

func (p *planner) volumeOwners() []VolumeOwner {
	out := make([]VolumeOwner, len(p.volumes))
	for i := range p.volumes {
		v := &p.volumes[i]
		out[i].Volume = v.Name
		if v.owner != none {
			out[i].Owner = p.gateways[v.owner].Number
		}
	}
	return out
}

func (p *planner) moves() []Move {
	var moves []Move
	for i := range p.targets {
		t := &p.targets[i]
		for _, pair := range p.replaced(t) {
			move := Move{Cause: p.pathCause(t, pair), Target: t.Name, From: pair.Gone, To: pair.By}
			if move.Cause == CauseRebalance {
				move.Gain = millionths(t.gain)
			}
			moves = append(moves, move)
		}
	}
	for i := range p.volumes {
		v := &p.volumes[i]
		move := Move{Volume: v.Name, From: v.Owner}
		if v.owner != none {
			move.To = p.gateways[v.owner].Number
		}
		if v.Owner == 0 || move.To == v.Owner {
			continue
		}
		if move.Cause = p.ownerCause(v); move.Cause == CauseRebalance {
			move.Gain = millionths(max(v.gain, p.targets[v.targets[0]].gain))
		}
		moves = append(moves, move)
	}
	slices.SortFunc(moves, compareMoves)
	return moves
}

func millionths(fraction float64) int64 { return int64(math.Round(min(fraction, 1e9) * 1e6)) }

var causes = []Cause{
	CauseDead, CauseLeft, CauseUnexported, CauseSurplus, CauseRedundancy, CauseRebalance,
}

func compareMoves(a, b Move) int {
	return cmp.Or(
		cmp.Compare(slices.Index(causes, a.Cause), slices.Index(causes, b.Cause)),
		-cmp.Compare(a.Gain, b.Gain), cmp.Compare(a.Target, b.Target),
		cmp.Compare(a.Volume, b.Volume), cmp.Compare(a.From, b.From))
}

func (p *planner) pathCause(t *target, pair Replacement) Cause {
	g, known := p.byNumber[pair.Gone]
	switch {
	case !known || !p.gateways[g].serves():
		return CauseDead
	case !p.mayStay(t, g):
		return CauseLeft
	case pair.By == 0 || len(t.present) > t.want:
		return CauseSurplus
	case t.improved:
		return CauseRedundancy
	case t.gain == 0 && len(t.nodes) > 0:
		return CauseLeft // a gateway that local volumes need replaced it
	}
	return CauseRebalance
}

func (p *planner) ownerCause(v *volume) Cause {
	if len(v.targets) == 0 {
		return CauseUnexported
	}
	t := &p.targets[v.targets[0]]
	switch {
	case v.present == none || !p.gateways[v.present].serves():
		return CauseDead
	case !p.gateways[v.present].mayKeep() || !slices.Contains(t.present, v.present):
		return CauseLeft
	case !t.has(v.present):
		return p.pathCause(t, Replacement{Gone: v.Owner, By: p.gateways[v.present].Number})
	}
	return CauseRebalance
}
