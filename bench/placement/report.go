package main

import (
	"fmt"
	"strings"
)

// aim is what a figure is to reach.
type aim struct {
	what   string
	figure float64
	limit  float64
	unit   string
	above  bool
}

func (a aim) met() bool {
	if a.above {
		return a.figure >= a.limit
	}
	return a.figure <= a.limit
}

func aims(records []record) []aim {
	var list []aim
	for i, r := range records {
		switch {
		case r.Clusters > 0:
			list = append(list, aim{"small clusters: switches to owners against the optimum, mean",
				r.MeanRatio, 1.3, "×", false})
		case i == 0:
			list = append(list,
				aim{"first plan, one core", r.Seconds, 5, "s", false},
				aim{"greatest load over the mean, first plan", r.OwnerMaxOverMean, 1.1, "×", false},
				aim{"targets with redundant paths, of those that can",
					float64(r.RedundantPermille), 1000, "‰", true},
				aim{"way to owners over that to the nearest gateways",
					r.OwnerHops / r.NearestHops, 1.1, "×", false})
		case i == 1:
			list = append(list,
				aim{"plan when nothing changes, one core", r.Seconds, 3, "s", false},
				aim{"moves when nothing changes", float64(r.PathMoves + r.OwnerMoves), 0, "", false})
		default:
			moved := float64(r.PathMoves+r.OwnerMoves) / float64(r.PathFairShare+r.OwnerFairShare)
			list = append(list,
				aim{r.Step + ": moves over the fair share", moved, 1.25, "×", false},
				aim{r.Step + ": greatest load over the mean", r.OwnerMaxOverMean, 1.25, "×", false})
		}
	}
	return list
}

func report(records []record, plot, data string) string {
	var b strings.Builder
	list := aims(records)
	met := 0
	for _, a := range list {
		if a.met() {
			met++
		}
	}
	s := records[0].Size
	fmt.Fprintf(&b, "# Placement: %d of %d aims met\n\n", met, len(list))
	fmt.Fprintf(&b, "%d gateways in %d racks, %d switches on two fabrics, %d targets, %d volumes, "+
		"%d hosts; seed %d. `make bench-placement` makes this page; the records are in [%s](%s).\n\n",
		s.Gateways, s.Racks, 2*(s.Racks+s.Spines), s.Targets, s.Targets*s.VolumesPerTarget, s.Hosts,
		records[0].Seed, data, data)
	b.WriteString("| aim | figure | limit | |\n|---|---|---|---|\n")
	for _, a := range list {
		sign, verdict := "≤", "met"
		if a.above {
			sign = "≥"
		}
		if !a.met() {
			verdict = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | %.4g %s | %s %.4g %s | %s |\n",
			a.what, a.figure, a.unit, sign, a.limit, a.unit, verdict)
	}
	fmt.Fprintf(&b, "\n![loads and hops](%s)\n\n", plot)
	writeSteps(&b, records)
	return b.String()
}

func writeSteps(b *strings.Builder, records []record) {
	b.WriteString("Each step plans and applies until nothing moves. Seconds are the mean of its " +
		"plans. A move is a present path or owner that changes; the fair share is 1 % of all. Loads are " +
		"of owned volumes, relative to weight.\n\n")
	b.WriteString("| step | plans | s/plan | path moves (share) | owner moves (share) | forced " +
		"| rebalancing | load max/mean | load min/mean | path load max/mean | problems |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range records {
		if r.Clusters > 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %d | %.2f | %d (%d) | %d (%d) | %d | %d | %.3f | %.3f | %.3f | %d |\n",
			r.Step, r.Plans, r.Seconds, r.PathMoves, r.PathFairShare, r.OwnerMoves, r.OwnerFairShare,
			r.Forced, r.Rebalancing, r.OwnerMaxOverMean, r.OwnerMinOverMean, r.PathMaxOverMean, r.Problems)
	}
	first := records[0]
	fmt.Fprintf(b, "\nSwitches between a host and the owner of a volume it uses, first plan: %.3f on "+
		"average; owners at random %.3f; the nearest gateways, however loaded, %.3f.\n",
		first.OwnerHops, first.RandomHops, first.NearestHops)
	for _, r := range records {
		if r.Clusters > 0 {
			fmt.Fprintf(b, "\n%d small clusters, all owners tried: the plan's sum of switches is %.3f "+
				"times the least that has no greater maximum of load, %.3f times at worst.\n",
				r.Clusters, r.MeanRatio, r.WorstRatio)
		}
	}
}
