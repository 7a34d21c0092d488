package decide

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// average is a volume's rate in commands per second. Older observations have less weight.
type average struct {
	sum, weight float64
}

func (a average) with(rate, share float64) average {
	return average{a.sum + share*(rate-a.sum), a.weight + share*(1-a.weight)}
}

// observeLoad records a gateway's load report. Between two reports of one incarnation, each volume that it owns has a rate. The
// rate's weight in the volume's average is the time between the reports.
func (v *LeaderView) observeLoad(report model.LoadReport, now time.Time) {
	number := report.Gateway.Number
	before := v.loads[number]
	v.loads[number] = report
	v.observeUse(before, report, now)
	passed := report.At.Sub(before.At)
	// The clock belongs to a replica, which may be another one than before.
	if before.Gateway != report.Gateway || passed < time.Second || passed > MaxLoadGap {
		return
	}
	had, has := commands(before), commands(report)
	share := 1 - math.Exp(-passed.Seconds()/LoadMemory.Seconds())
	for name := range v.holds[number] {
		volume := v.Volumes[name]
		if volume == nil || volume.Status.Ownership.Owner != report.Gateway {
			continue // it does not execute the volume's commands yet, or no longer
		}
		uid := volume.Meta.UID
		from, counted := had[uid]
		to, counts := has[uid]
		if counted && counts && to >= from {
			v.rates[uid] = v.rates[uid].with(float64(to-from)/passed.Seconds(), share)
		}
	}
}

// commands returns the commands of each volume, by its uid.
func commands(report model.LoadReport) map[string]uint64 {
	counts := make(map[string]uint64, len(report.Volumes))
	for _, l := range report.Volumes {
		counts[l.UID] = l.Commands
	}
	return counts
}

// rate returns a volume's rate in commands per second: an average over LoadMemory, or over the shorter time for which the leader
// has observed it. It spans changes of owner.
func (v *LeaderView) rate(volume *model.Volume) uint64 {
	a := v.rates[volume.Meta.UID]
	if a.weight == 0 {
		return 0
	}
	return uint64(a.sum / a.weight)
}

// observeUse records which volumes were read or written since a gateway's last report. For the first report of a process, it
// counts from the start of that process.
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

// isUsed reports whether hosts read or write a volume, as far as known, even if its gateway is lost and sends no reports.
func (v *LeaderView) isUsed(volume *model.Volume) bool {
	_, used := v.used[volume.Meta.UID]
	return used
}

// busiestFirst orders volumes: when hundreds lost their owner, volumes that hosts wait for precede volumes that no host uses.
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
