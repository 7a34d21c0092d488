package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// aim says what a group should keep to, and whether it does.
func (g group) aim() (text string, kept bool) {
	switch median, p99 := quantile(g.gaps, 0.5), quantile(g.gaps, 0.99); g.kind {
	case kill:
		return "median ≤ 0.5 s, p99 ≤ 2 s, no errors", median <= 0.5 && p99 <= 2 && g.errors == 0
	case linuxKill:
		return "all ≤ 3 s, no errors", quantile(g.gaps, 1) <= 3 && g.errors == 0
	case move:
		return "p99 ≤ 0.3 s, no errors", p99 <= 0.3 && g.errors == 0
	default:
		return "all ≤ 5 s beyond the initiator's detection", quantile(g.beyond, 1) <= 5 && g.errors == 0
	}
}

const head = `# Failover as a host sees it

The stall is the longest gap between two acknowledged operations on a LUN around a fault, seen by an initiator
in user space that changes path on RST: reads at once, writes after the life of a forwarded command's token (0.5 s).
Stalls are of every fault and every watched LUN that it struck. Hosts read and write the watched LUNs, a few that are spread over all
(-watched); the others are idle, and their next owners are found after those of the LUNs in use. *All go on* is when the control
plane had told of a new owner for every LUN struck and I/O of the watched ones went on. The longest operation of a fault is mostly a
write that waited. Node loss is judged beyond the 5 s after which a host gives up a silent path.

A Linux host's stall is the longest time that one I/O of fio's took on a dm-multipath map, with the settings that
` + "`sluicectl host-config linux`" + ` recommends (NOP-Out every 2 s, 3 s to answer; fast_io_fail_tmo 1). It runs in an emulated guest:
its CPU is slower by an order than a real one.

`

func report(records []record, plot string) string {
	var text strings.Builder
	text.WriteString(head)
	text.WriteString("| fault | LUNs | struck | times | stall median s | p99 s | max s | all go on median s | max s | " +
		"longest operation median s | max s | errors | retries | aim | kept |\n|" + strings.Repeat("---|", 15) + "\n")
	all := groups(records)
	for _, g := range all {
		aim, kept := g.aim()
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %d | %d | %s | %s |\n", g.kind,
			g.luns, g.struck, g.times, quantile(g.gaps, 0.5), quantile(g.gaps, 0.99), quantile(g.gaps, 1),
			quantile(g.all, 0.5), quantile(g.all, 1), quantile(g.longest, 0.5), quantile(g.longest, 1), g.errors, g.retries,
			aim, said(kept))
	}
	text.WriteString(storageShare(all))
	text.WriteString(flatness(all))
	text.WriteString(work(all))
	fmt.Fprintf(&text, "\n![stalls](%s)\n", plot)
	return text.String()
}

const takeoverAim = 0.2 // seconds, the median with the fewest LUNs

// storageShare tells how long storage took to shut an owner out and to let the next one in, where it had to.
func storageShare(all []group) string {
	var text strings.Builder
	for _, g := range all {
		if len(g.takeovers) == 0 {
			continue
		}
		if text.Len() == 0 {
			text.WriteString("\n## Storage's part\n\nFrom the moment an owner begins to be shut out of Ceph until the next one serves the volume: epoch, " +
				"blocklist, map, lock, reservations. One gateway is shut out once, whatever it owned.\n\n" +
				"| fault | LUNs | times | median s | p99 s | max s | aim | kept |\n|" + strings.Repeat("---|", 8) + "\n")
		}
		median := quantile(g.takeovers, 0.5)
		aim, kept := "median ≤ 0.2 s", said(median <= takeoverAim)
		if g.luns > 1 {
			aim, kept = "", ""
		}
		fmt.Fprintf(&text, "| %s | %d | %d | %.3f | %.3f | %.3f | %s | %s |\n", g.kind, g.luns, len(g.takeovers), median,
			quantile(g.takeovers, 0.99), quantile(g.takeovers, 1), aim, kept)
	}
	return text.String()
}

func said(kept bool) string {
	if kept {
		return "yes"
	}
	return "**no**"
}

// flatTimes is how many times as long a stall may take with the most LUNs as with the fewest and still count as flat.
const flatTimes = 1.5

// flatness compares the medians of the most and the fewest LUNs, where there are several numbers of them.
func flatness(all []group) string {
	var text strings.Builder
	for _, kind := range kinds {
		var few, many group
		for _, g := range all { // by rising number of LUNs
			if g.kind != kind {
				continue
			}
			if few.kind == "" {
				few = g
			}
			many = g
		}
		if few.luns == many.luns {
			continue
		}
		if text.Len() == 0 {
			fmt.Fprintf(&text, "\n## Flatness\n\nMedians with the most LUNs over those with the fewest; flat is ≤ %.1f×.\n\n"+
				"| fault | LUNs | stall s | ratio | all go on s | ratio | flat |\n|%s\n", flatTimes, strings.Repeat("---|", 7))
		}
		stalls := [2]float64{quantile(few.gaps, 0.5), quantile(many.gaps, 0.5)}
		ends := [2]float64{quantile(few.all, 0.5), quantile(many.all, 0.5)}
		fmt.Fprintf(&text, "| %s | %d, %d | %.3f, %.3f | %.2f× | %.3f, %.3f | %.2f× | %s |\n", kind, few.luns, many.luns,
			stalls[0], stalls[1], stalls[1]/stalls[0], ends[0], ends[1], ends[1]/ends[0], said(stalls[1] <= flatTimes*stalls[0]))
	}
	return text.String()
}

func writeReport(records []record, base string) error {
	if len(records) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return err
	}
	if err := writePlot(records, base+".svg"); err != nil {
		return err
	}
	text := report(records, filepath.Base(base)+".svg")
	fmt.Print(text)
	return os.WriteFile(base+".md", []byte(text), 0o644)
}
