package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// aim says what a group should keep to, and whether it does.
func (g group) aim() (text string, kept bool) {
	switch median, p99 := quantile(g.gaps, 0.5), quantile(g.gaps, 0.99); g.kind {
	case kill:
		return "median ≤ 0.5 s, p99 ≤ 2 s, no errors", median <= 0.5 && p99 <= 2 && g.errors == 0
	case move:
		return "p99 ≤ 0.3 s, no errors", p99 <= 0.3 && g.errors == 0
	default:
		return "all ≤ 5 s beyond the initiator's detection", quantile(g.beyond, 1) <= 5 && g.errors == 0
	}
}

func report(records []record, plot string) string {
	var text strings.Builder
	text.WriteString("# Failover as a host sees it\n\n" +
		"The stall is the longest gap between two acknowledged operations on a volume around a fault, seen by an initiator\n" +
		"in user space that changes path on RST: reads at once, writes after the life of a forwarded command's token.\n" +
		"The longest operation is shown beside it. Node loss is judged beyond the 5 s after which a host gives up a silent path.\n\n" +
		"| fault | LUNs | times | median s | p99 s | max s | longest operation s | errors | retries | aim | kept |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, g := range groups(records) {
		aim, kept := g.aim()
		said := "**no**"
		if kept {
			said = "yes"
		}
		fmt.Fprintf(&text, "| %s | %d | %d | %.3f | %.3f | %.3f | %.3f | %d | %d | %s | %s |\n", g.kind, g.luns, len(g.gaps),
			quantile(g.gaps, 0.5), quantile(g.gaps, 0.99), slices.Max(g.gaps), g.longest, g.errors, g.retries, aim, said)
	}
	fmt.Fprintf(&text, "\n![stalls](%s)\n", plot)
	return text.String()
}

func writeReport(records []record, base string) error {
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
