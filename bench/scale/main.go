// Command scale fills a cluster on one machine: 16 gateways, 1,024 LUNs that all of them export, 1,024 sessions. It measures the
// memory of a gateway for a LUN and a session, the time until a starting gateway's portals are open, and the time until all LUNs
// of a killed gateway have another owner. `make bench-scale` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"sluice.dev/sluice/bench/records"
	"sluice.dev/sluice/tests/netns"
)

// settings of a run.
type settings struct {
	programs, results, out   string
	generator                string
	gateways, luns, sessions int
	kills                    int
}

func main() {
	s := settings{}
	flag.StringVar(&s.programs, "programs", "build/bin", "directory of the programs")
	flag.StringVar(&s.results, "results", records.Results, "directory of the records")
	flag.StringVar(&s.out, "out", records.Reports, "directory of the report")
	flag.StringVar(&s.generator, "generator", records.Generator, "program that makes the report of the records")
	flag.IntVar(&s.gateways, "gateways", 16, "gateways, from 2 to 32, each of which exports every LUN")
	flag.IntVar(&s.luns, "luns", 1024, "LUNs, from 2 to 1024")
	flag.IntVar(&s.sessions, "sessions", 1024, "sessions, spread over all portals")
	flag.IntVar(&s.kills, "kills", 5, "gateways that are killed and started again, each once")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func (s settings) check() error {
	switch {
	case s.gateways < 2 || s.gateways > 32:
		return fmt.Errorf("-gateways %d: 2 to 32 are possible", s.gateways)
	case s.luns < 2 || s.luns > 1024:
		return fmt.Errorf("-luns %d: 2 to 1024 are possible", s.luns)
	case s.sessions < 1 || s.sessions > 4096:
		return fmt.Errorf("-sessions %d: 1 to 4096 are possible", s.sessions)
	case s.kills < 1 || s.kills > s.gateways:
		return fmt.Errorf("-kills %d: 1 to %d are possible, each gateway once", s.kills, s.gateways)
	}
	return nil
}

func run(s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := netns.Isolate(); err != nil {
		return fmt.Errorf("this needs namespaces: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	file, err := records.Create(s.results, "scale", s.generator)
	if err != nil {
		return err
	}
	f, err := measure(ctx, s)
	// A failed run reports its measurements.
	return errors.Join(err, f.write(file.Write), file.Report(s.out, "scale"), file.Close())
}
