// Command switches measures the cost of hops between switches for hosts of a cluster, on one, two and three switches: with random
// volumes and portals, with the farthest ones, and with the paths that Sluice assigns. README.md explains the results.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
)

const (
	hosts     = 6 // and as many gateways: each switch has the same number of both
	portRate  = 100_000_000
	linkRate  = 100_000_000 // between switches: a port like the others, as in the study
	readyTime = time.Minute
	span      = 16 << 20
)

// Ways to select a portal.
const (
	nearest  = "as shown"
	random   = "random"
	farthest = "farthest"
)

// fabrics by the number of their switches.
var fabrics = []string{"one", "two", "three"}

type command struct {
	op   string
	size int
}

func main() { harness.Main("switches", run) }

func run(ctx context.Context, b *harness.Bench) error {
	starting, started := context.WithTimeout(ctx, readyTime)
	defer started()
	made, err := cluster.Start(starting, cluster.Options{Programs: b.Programs, Directory: b.Directory, Gateways: hosts, Volumes: hosts,
		Replicas: 1, Fabrics: fabrics, GatewayEnvironment: harness.SteadyGateways})
	if err != nil {
		return err
	}
	defer func() { _ = made.Close() }() // its namespaces end with this process in any case
	p := &plant{Bench: b, Cluster: made}
	if err := p.prepare(starting); err != nil {
		return fmt.Errorf("%w\n%s", err, made.Logs(10))
	}
	commands := harness.Pick(b.Mode, []command{{"read", 256 << 10}},
		[]command{{"read", 256 << 10}, {"write", 256 << 10}, {"read", 4 << 10}},
		[]command{{"read", 4 << 10}, {"read", 64 << 10}, {"read", 256 << 10}, {"read", 1 << 20},
			{"write", 4 << 10}, {"write", 64 << 10}, {"write", 256 << 10}, {"write", 1 << 20}})
	for round := range b.RoundsOr(1, 2, 9) {
		dice := rand.New(rand.NewPCG(uint64(round), 2004))
		for _, c := range commands {
			if err := p.measureCommand(ctx, round, c, dice.Perm(hosts)); err != nil {
				return fmt.Errorf("%w\n%s", err, made.Logs(10))
			}
		}
	}
	return p.aims()
}

// measureCommand measures one command everywhere, in an order that the next round reverses.
func (p *plant) measureCommand(ctx context.Context, round int, c command, order []int) error {
	type cell struct {
		switches int
		way      string
	}
	cells := []cell{{1, nearest}, {2, nearest}, {3, nearest}, {1, random}, {2, random}, {3, random}, {2, farthest}, {3, farthest}}
	for i := range cells {
		at := cells[(i+3*round)%len(cells)]
		if err := p.measure(ctx, round, c, at.switches, at.way, order); err != nil {
			return fmt.Errorf("%d switches, portals %s, %s of %d: %w", at.switches, at.way, c.op, c.size, err)
		}
	}
	return nil
}

func (p *plant) measure(ctx context.Context, round int, c command, switches int, way string, order []int) error {
	fabric := fabrics[switches-1]
	chosen, err := p.portals(ctx, fabric, way, order)
	if err != nil {
		return err
	}
	var pids []int
	for _, gateway := range p.Gateways {
		pids = append(pids, gateway.Pid())
	}
	var loads []harness.Load
	hops, forwarded := 0, 0
	used := map[string]bool{}
	for i, at := range chosen {
		hops += at.hops
		used[at.portal] = true
		if !at.owner {
			forwarded++
		}
		loads = append(loads, harness.Load{Node: hostNode(i), Portal: at.portal, Target: at.target, Initiator: at.initiator, LUN: at.lun,
			Op: c.op, Size: c.size, Depth: 8, Span: span, Warmup: 0.4, Seconds: harness.Pick(p.Mode, 0.3, 1.0, 3.0), Watch: pids})
	}
	results, err := p.Drive(ctx, loads)
	if err != nil {
		return err
	}
	figures := harness.Sum(results)
	figures["hops_mean"] = float64(hops) / hosts
	figures["forwarded_hosts"] = float64(forwarded)
	figures["portals_used"] = float64(len(used))
	figures["used_ports_share"] = figures["bytes_per_second"] / (float64(len(used)) * harness.Payload(portRate))
	figures["ports_share"] = figures["bytes_per_second"] / (hosts * harness.Payload(portRate))
	fmt.Printf("round %d, %-5s %7d, %d switches, portals %-8s: %5.1f MB/s, %.0f %% of the ports, %.1f hops, %d portals, %d forwarded\n", round+1, c.op,
		c.size, switches, way, figures["bytes_per_second"]/1e6, 100*figures["ports_share"], figures["hops_mean"], len(used), forwarded)
	return p.Record(harness.Measurement{Subject: "sluice", Round: round + 1, Figures: figures, Session: results[0].Negotiated(),
		Parameters: map[string]any{"op": c.op, "size": c.size, "depth": 8, "switches": switches, "portals": way, "hosts": hosts,
			"gateways": hosts, "port_bits_per_second": portRate, "link_bits_per_second": linkRate}})
}

func (p *plant) aims() error {
	values := func(figure string, switches int, way string) []float64 {
		return p.Values(figure, "sluice", map[string]any{"op": "read", "size": 256 << 10, "switches": switches, "portals": way})
	}
	of := func(switches int, way string) []float64 { return values("bytes_per_second", switches, way) }
	for _, switches := range []int{2, 3} {
		if err := p.Aim(fmt.Sprintf("256 KiB reads by the portals shown on %d switches, of those on one", switches),
			harness.Median(harness.Ratios(of(switches, nearest), of(1, nearest))), ">= 0.95"); err != nil {
			return err
		}
		const inUse = "used_ports_share"
		if err := p.Aim(fmt.Sprintf("the same by port in use: nothing is lost between %d switches", switches),
			harness.Median(harness.Ratios(values(inUse, switches, nearest), values(inUse, 1, nearest))), ">= 0.95"); err != nil {
			return err
		}
	}
	if err := p.Aim("the same by random portals on 3 switches: the loss that placement avoids is there",
		harness.Median(harness.Ratios(of(3, random), of(1, random))), "<= 0.85"); err != nil {
		return err
	}
	return p.Aim("the same by the farthest portals on 3 switches: the loss of the study is there",
		harness.Median(harness.Ratios(of(3, farthest), of(1, nearest))), "<= 0.7")
}
