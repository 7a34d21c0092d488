// Command isolation measures what a host notices on one LUN while the device of another LUN stalls: the latency of commands on the
// healthy LUN (the neighbour), with Sluice and with Debian's tgt in alternation. The device is a FUSE file system of this program
// (tests/disk), which holds all requests on a schedule. `make bench-isolation` runs it.
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
	gateway, results, out, generator string
	repetitions, stalls              int
	calm, stall, warm, pace          time.Duration
	neighbour, stalled               int
}

func main() {
	s := settings{}
	flag.StringVar(&s.gateway, "gateway", "build/bin/sluice-gateway", "program of the gateway")
	flag.StringVar(&s.results, "results", records.Results, "directory of the records")
	flag.StringVar(&s.out, "out", records.Reports, "directory of the report")
	flag.StringVar(&s.generator, "generator", records.Generator, "program that makes the report of the records")
	flag.IntVar(&s.repetitions, "repetitions", 7, "repetitions of each target, in alternation")
	flag.IntVar(&s.stalls, "stalls", 3, "stalls of the device in a repetition")
	flag.DurationVar(&s.calm, "calm", 5*time.Second, "time without a stall before each stall, and after the last one")
	flag.DurationVar(&s.stall, "stall", 5*time.Second, "duration of a stall")
	flag.DurationVar(&s.warm, "warm", 2*time.Second, "load before the measurement")
	flag.IntVar(&s.neighbour, "neighbour", 4, "commands in flight on the healthy LUN")
	flag.IntVar(&s.stalled, "stalled", 32, "commands in flight on the LUN whose device stalls")
	flag.DurationVar(&s.pace, "pace", 100*time.Millisecond, "pause of each of those after a command, so that they take nothing from the healthy LUN")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "isolation:", err)
		os.Exit(1)
	}
}

func run(s settings) (err error) {
	if s.repetitions < 1 || s.stalls < 1 || s.neighbour < 1 || s.stalled < 1 || s.calm <= recovery || s.stall <= 0 {
		return fmt.Errorf("repetitions, stalls and commands in flight are at least 1; -calm is longer than %v", recovery)
	}
	if err := netns.Isolate(); err != nil {
		return fmt.Errorf("this needs namespaces: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	file, err := records.Create(s.results, "isolation", s.generator)
	if err != nil {
		return err
	}
	// A failed run reports its measurements.
	defer func() { err = errors.Join(err, file.Report(s.out, "isolation"), file.Close()) }()
	facts := map[string]any{"stall": s.stall.String(), "calm": s.calm.String(), "commands in flight on the healthy LUN": s.neighbour,
		"commands in flight on the other LUN": s.stalled, "pause after each of those": s.pace.String()}
	if err := file.Facts(facts); err != nil {
		return err
	}
	for repetition := range s.repetitions {
		for i := range subjects {
			chosen := subjects[(i+repetition)%len(subjects)] // the first one of a repetition alternates, too
			r, err := measure(ctx, s, chosen)
			if err != nil {
				return fmt.Errorf("%s, repetition %d: %w", chosen.name, repetition+1, err)
			}
			r.Repetition = repetition + 1
			fmt.Printf("%-6s repetition %d: p99 %.3f ms calm, %.3f ms stalled, %.2f times\n", r.Subject, r.Repetition, r.Calm.P99*1000, r.Stalled.P99*1000, r.Ratio)
			if err := file.Write(r); err != nil {
				return err
			}
		}
	}
	return nil
}
