// Command growth measures the cost of a command at a gateway, and the gateway's memory, as the numbers of LUNs, sessions and
// gateways grow: directly and forwarded, beside a separate gateway that does not grow. README.md explains the results.
package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"sluice.dev/sluice/bench/harness"
)

const (
	readyTime = 5 * time.Minute
	size      = 4096
	depth     = 8
	span      = 16 << 20
)

// cpu is the compared figure.
const cpu = "target_cpu_s_per_command"

// The growing axis. The other two stay: one LUN, one session of the load, two gateways.
const (
	byGateways = "gateways"
	byLUNs     = "luns"
	bySessions = "sessions"
)

// stage is a step of the growth.
type stage struct {
	axis                     string
	gateways, luns, sessions int
}

func (s stage) parameters(op string) map[string]any {
	return map[string]any{"axis": s.axis, "gateways": s.gateways, "luns": s.luns, "sessions": s.sessions, "op": op, "size": size}
}

// plan of a run, each list in order. The LUNs and sessions of the first cluster with more than one gateway grow.
type plan struct {
	rounds                   int
	seconds                  float64
	operations               []string
	gateways, luns, sessions []int
}

func planOf(b *harness.Bench) plan {
	return plan{rounds: b.RoundsOr(1, 5, 21), seconds: harness.Pick(b.Mode, 0.2, 0.25, 0.5),
		operations: harness.Pick(b.Mode, []string{"read"}, []string{"read"}, []string{"read", "write"}),
		gateways:   harness.Pick(b.Mode, []int{2}, []int{1, 2, 4}, []int{1, 2, 4, 8, 16}),
		luns:       harness.Pick(b.Mode, []int{1, 8}, []int{1, 64, 512}, []int{1, 16, 128, 1024, 2048, 4096}),
		sessions:   harness.Pick(b.Mode, []int{1, some, 2 * some}, []int{1, some, 256}, []int{1, some, 256, 1024})}
}

func main() { harness.Main("growth", run) }

func run(ctx context.Context, b *harness.Bench) error {
	if err := harness.Steady(""); err != nil {
		return err
	}
	p := planOf(b)
	alone, err := startAlone(ctx, b)
	if err != nil {
		return err
	}
	defer func() { _ = alone.process.Kill() }() // it ends in any case
	echo, err := startEcho(ctx, b)
	defer echo.stop()
	if err != nil {
		return err
	}
	grown := false
	for _, gateways := range p.gateways {
		f, err := start(ctx, b, p, alone, echo, gateways)
		if err != nil {
			return err
		}
		err = f.measure(ctx, stage{byGateways, gateways, 1, 1})
		if err == nil && gateways > 1 && !grown {
			grown = true
			err = f.grow(ctx)
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, f.Logs(8))
		}
		if err := f.Cluster.Close(); err != nil {
			return err
		}
	}
	return aims(b, p)
}

// grow adds LUNs, then sessions.
func (f *field) grow(ctx context.Context) error {
	for _, luns := range f.plan.luns {
		if err := f.moreLUNs(ctx, luns); err != nil {
			return err
		}
		s := stage{byLUNs, f.gateways, luns, 1}
		if err := f.measure(ctx, s); err != nil {
			return err
		}
		if err := f.measureLUNs(ctx, s); err != nil {
			return err
		}
	}
	for _, sessions := range f.plan.sessions {
		if err := f.moreSessions(ctx, sessions); err != nil {
			return err
		}
		s := stage{bySessions, f.gateways, f.Volumes, sessions}
		if err := f.measure(ctx, s); err != nil {
			return err
		}
		if err := f.measureSessions(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// measure measures all ways to the first LUN in turn.
func (f *field) measure(ctx context.Context, s stage) error {
	if err := f.locate(ctx); err != nil {
		return err
	}
	weight, err := f.idleUse(ctx)
	if err != nil {
		return err
	}
	ways := []string{"standalone", "direct", "forwarded"}
	if s.gateways == 1 {
		ways = ways[:2]
	}
	for round := range f.plan.rounds {
		for _, op := range f.plan.operations {
			figures := map[string]map[string]float64{}
			for i := range ways {
				way := ways[(i+round)%len(ways)]
				if figures[way], err = f.drive(ctx, way, op); err != nil {
					return fmt.Errorf("%+v, %s: %w", s, way, err)
				}
			}
			for _, way := range ways {
				if way != "standalone" {
					alone := figures["standalone"]
					standing := weight["pair_idle_cpu_share"] / figures[way]["iops"]
					figures[way]["cpu_ratio_to_standalone"] = figures[way][cpu] / alone[cpu]
					figures[way]["net_cpu_ratio_to_standalone"] = (figures[way][cpu] - standing) / alone[cpu]
					figures[way]["noise_share"] = max(figures[way]["noise_share"], alone["noise_share"])
				}
				if way == "forwarded" {
					figures[way]["cpu_ratio_to_direct"] = figures[way][cpu] / figures["direct"][cpu]
				}
				if way == "direct" {
					for name, value := range weight {
						figures[way][name] = value
					}
				}
				parameters := harness.With(s.parameters(op), map[string]any{"depth": depth})
				if err := f.Record(harness.Measurement{Subject: way, Parameters: parameters, Round: round + 1, Figures: figures[way]}); err != nil {
					return err
				}
			}
			fmt.Printf("%s: %d gateways, %d LUNs, %d sessions, round %d, %s: alone %.2f us, direct %.2f, forwarded %.2f; %.1f MiB, idle %.2f %%\n",
				s.axis, s.gateways, s.luns, s.sessions, round+1, op, 1e6*figures["standalone"][cpu], 1e6*figures["direct"][cpu],
				1e6*figures["forwarded"][cpu], weight["target_memory_bytes"]/(1<<20), 100*weight["idle_cpu_share"])
		}
	}
	return nil
}

// aims: growth costs a command nothing, and memory in proportion.
func aims(b *harness.Bench, p plan) error {
	for _, axis := range []struct {
		name  string
		steps []int
	}{{byGateways, p.gateways}, {byLUNs, p.luns}, {bySessions, p.sessions}} {
		first, last := axis.steps[0], axis.steps[len(axis.steps)-1]
		if first == last {
			continue
		}
		at := func(figure, subject string, step int) []float64 {
			return b.Quiet(figure, subject, map[string]any{"axis": axis.name, axis.name: step, "op": "read"})
		}
		for _, kind := range []struct{ figure, text string }{{"cpu_ratio_to_standalone", "CPU per read"},
			{"net_cpu_ratio_to_standalone", "CPU per read without what gateways use when idle,"}} {
			ratio := func(step int) float64 { return harness.Median(at(kind.figure, "direct", step)) }
			if err := b.Aim(fmt.Sprintf("%s with %d %s over that with %d, each beside a gateway that didn't grow (%s)", kind.text, last, axis.name,
				first, spread(at(kind.figure, "direct", last))), ratio(last)/ratio(first), "<= 1.1"); err != nil {
				return err
			}
		}
		if axis.name == byGateways {
			continue
		}
		if err := spreadAim(b, axis.name, axis.steps); err != nil {
			return err
		}
		memory := func(step int) float64 { return harness.Median(at("target_memory_bytes", "direct", step)) }
		kib, bound := (memory(last)-memory(first))/float64(last-first)/1024, "<= 32"
		if axis.name == bySessions {
			bound = "<= 512"
		}
		if err := b.Aim("KiB of a gateway's memory for each of "+axis.name, kib, bound); err != nil {
			return err
		}
	}
	forwarded := b.Quiet("cpu_ratio_to_direct", "forwarded", map[string]any{"op": "read"})
	return b.Aim("CPU of both gateways per forwarded read over a direct one ("+spread(forwarded)+")", harness.Median(forwarded), "<= 2.5")
}

// spreadAim is the aim for commands to all LUNs or sessions. All LUNs are on one connection. A bare echo shows the kernel's cost
// of more connections. With fewer than `some`, several commands arrive together.
func spreadAim(b *harness.Bench, axis string, steps []int) error {
	first, last := steps[0], steps[len(steps)-1]
	used := func(step int) map[string]any {
		return map[string]any{"axis": axis, axis: step, "used": "all", "op": "read"}
	}
	if axis == byLUNs {
		at := func(step int) float64 { return harness.Median(b.Values(netCPU, "direct", used(step))) }
		return b.Aim(fmt.Sprintf("CPU per read, without what the gateway uses when idle, to all of %d LUNs in turn over that with %d", last, first),
			at(last)/at(first), "<= 1.25")
	}
	at := func(step int) []float64 { return b.Quiet("cpu_ratio_to_bare", "direct", used(step)) }
	return b.Aim(fmt.Sprintf("CPU per read with one in flight on each of %d sessions over that with %d, each beside a bare echo of as many (%s)", last, some,
		spread(at(last))), harness.Median(at(last))/harness.Median(at(some)), "<= 1.1")
}

func spread(values []float64) string {
	if len(values) == 0 {
		return "nothing measured"
	}
	least, most := math.Inf(1), 0.0
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	return strings.TrimSpace(fmt.Sprintf("%.2f to %.2f", least, most))
}
