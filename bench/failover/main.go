// Command failover measures how long a host's I/O stops when a gateway is killed, when a volume is moved as planned, and when a
// node is lost. It measures the longest gap between acknowledged operations around the fault, from an initiator in user space
// that changes path on RST, with one LUN and with many. `make bench-failover` runs it on a separate cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sluice.dev/sluice/bench/records"
	"sluice.dev/sluice/tests/netns"
)

// settings of a run.
type settings struct {
	programs, results, out, generator string
	// ceph is tests/lib/mini-ceph if the volumes are in a real Ceph; empty: in a directory.
	ceph string
	// first are the numbers of faults with the first number of LUNs, others with the other ones.
	first, others   counts
	luns            string
	watched         int
	resetWait, calm time.Duration
}

// counts of faults.
type counts struct{ kills, moves, losses int }

func main() {
	s := settings{}
	var also string
	flag.StringVar(&s.programs, "programs", "build/bin", "directory of the programs")
	flag.StringVar(&s.results, "results", records.Results, "directory of the records")
	flag.StringVar(&s.out, "out", records.Reports, "directory of the report")
	flag.StringVar(&s.generator, "generator", records.Generator, "program that makes the report of the records")
	flag.StringVar(&s.ceph, "ceph", "", "tests/lib/mini-ceph: the volumes live in a real Ceph, and the report is of that")
	flag.IntVar(&s.first.kills, "kills", 100, "SIGKILLs of the owner, with the first number of LUNs")
	flag.IntVar(&s.first.moves, "moves", 100, "planned moves, likewise")
	flag.IntVar(&s.first.losses, "losses", 20, "cuts of all links of the owner's node, likewise")
	flag.IntVar(&s.others.kills, "other-kills", 10, "SIGKILLs with each other number of LUNs")
	flag.IntVar(&s.others.moves, "other-moves", 10, "planned moves, likewise")
	flag.IntVar(&s.others.losses, "other-losses", 3, "cuts, likewise")
	flag.StringVar(&s.luns, "luns", "1,100,1000", "numbers of LUNs to measure with, the one with all faults first")
	flag.IntVar(&s.watched, "watched", 8, "on how many LUNs, at most, hosts read and write, at least 1: the others are idle")
	flag.DurationVar(&s.resetWait, "reset-wait", 500*time.Millisecond, "how long the host waits with a write's retry after a reset: "+
		"not less than a forwarded command's token lives")
	flag.DurationVar(&s.calm, "calm", 500*time.Millisecond, "undisturbed I/O before and after each fault")
	flag.StringVar(&also, "also", "", "records measured elsewhere (tests/demo/cluster), to be reported on, too")
	flag.Parse()
	if err := run(s, also); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run(s settings, also string) (err error) {
	name, storage := "failover", "files"
	if s.ceph != "" {
		name, storage = "failover-rbd", "Ceph RBD"
	}
	if s.watched < 1 {
		return fmt.Errorf("-watched %d: at least one LUN is watched", s.watched)
	}
	if err := netns.Isolate(); err != nil {
		return fmt.Errorf("this needs namespaces: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	all, err := numbers(s.luns)
	if err != nil {
		return err
	}
	file, err := records.Create(s.results, name, s.generator)
	if err != nil {
		return err
	}
	// A failed run reports its measurements.
	defer func() { err = errors.Join(err, file.Report(s.out, name), file.Close()) }()
	if err := errors.Join(file.Facts(map[string]any{"storage": storage}), addRecords(also, file)); err != nil {
		return err
	}
	for i, luns := range all {
		times := s.others
		if i == 0 {
			times = s.first
		}
		if err := measure(ctx, s, luns, times, func(r record) error { return file.Write(r) }); err != nil {
			return err
		}
	}
	return nil
}

// addRecords adds the records of a file, if one is named, to this run's.
func addRecords(path string, to *records.File) error {
	if path == "" {
		return nil
	}
	found, err := readRecords(path)
	for _, r := range found {
		err = errors.Join(err, to.Write(r))
	}
	return err
}
