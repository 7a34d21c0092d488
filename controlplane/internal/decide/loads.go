package decide

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// average of a volume's rate, in commands per second: what counts less the longer ago it was, over what it was observed for.
type average struct {
	sum, weight float64
}

func (a average) with(rate, share float64) average {
	return average{a.sum + share*(rate-a.sum), a.weight + share*(1-a.weight)}
}

// observeLoad takes up what a gateway's volumes have done. Between two reports of one incarnation each volume that it owns
// has a rate, which counts in the volume's average by how long it was one.
func (v *LeaderView) observeLoad(report model.LoadReport, now time.Time) {
	number := report.Gateway.Number
	before := v.loads[number]
	v.loads[number] = report
	v.observeUse(before, report, now)
	passed := report.At.Sub(before.At)
	// The clock is a replica's, and may be another replica's than before.
	if before.Gateway != report.Gateway || passed < time.Second || passed > MaxLoadGap {
		return
	}
	had, has := commands(before), commands(report)
	share := 1 - math.Exp(-passed.Seconds()/LoadMemory.Seconds())
	for name := range v.holds[number] {
		volume := v.Volumes[name]
		if volume == nil || volume.Status.Ownership.Owner != report.Gateway {
			continue // it executes nothing of it yet, or not any more
		}
		uid := volume.Meta.UID
		from, counted := had[uid]
		to, counts := has[uid]
		if counted && counts && to >= from {
			v.rates[uid] = v.rates[uid].with(float64(to-from)/passed.Seconds(), share)
		}
	}
}

// commands of each volume, by its UID.
func commands(report model.LoadReport) map[string]uint64 {
	counts := make(map[string]uint64, len(report.Volumes))
	for _, l := range report.Volumes {
		counts[l.UID] = l.Commands
	}
	return counts
}

// rate of a volume in commands per second: an average over LoadMemory, or over what the leader has seen of it, whoever owned it
// meanwhile.
func (v *LeaderView) rate(volume *model.Volume) uint64 {
	a := v.rates[volume.Meta.UID]
	if a.weight == 0 {
		return 0
	}
	return uint64(a.sum / a.weight)
}

// observeUse notes which volumes were read or written since a gateway's last report. That of another process than the last one counts
// from that one's beginning.
func (v *LeaderView) observeUse(before, report model.LoadReport, now time.Time) {
	moved := make(map[string]uint64, len(before.Volumes))
	if before.Gateway == report.Gateway {
		for _, l := range before.Volumes {
			moved[l.UID] = l.Bytes
		}
	}
	for _, l := range report.Volumes {
		if l.Bytes > moved[l.UID] {
			v.used[l.UID] = now
		} else if at, was := v.used[l.UID]; was && now.Sub(at) > UsedFor {
			delete(v.used, l.UID)
		}
	}
}

// isUsed says that hosts read or write a volume, as far as is known: also of one whose gateway is lost and reports no more.
func (v *LeaderView) isUsed(volume *model.Volume) bool {
	_, used := v.used[volume.Meta.UID]
	return used
}

// busiestFirst orders volumes: of hundreds whose owner is lost, those that hosts wait for are not to wait for those that nobody uses.
func (v *LeaderView) busiestFirst(volumes []*model.Volume) {
	slices.SortFunc(volumes, func(a, b *model.Volume) int {
		aUsed, bUsed := v.isUsed(a), v.isUsed(b)
		switch {
		case aUsed && !bUsed:
			return -1
		case bUsed && !aUsed:
			return 1
		}
		return cmp.Or(cmp.Compare(v.rate(b), v.rate(a)), cmp.Compare(a.Meta.Name, b.Meta.Name))
	})
}
