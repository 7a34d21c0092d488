// Command scale measures one host with increasing numbers of processes, sizes and LUNs, and increasing numbers of hosts, on the
// ports of one gateway and of four. README.md explains the results.
package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
)

const (
	clients   = 8
	ports     = 4
	portRate  = 100_000_000 // bits per second: GbE's tenth is 100 Mb/s
	readyTime = 2 * time.Minute
	span      = 160 << 20 // ten of the largest commands, each at a different place
)

// Location of the LUNs: gateway 0 has all of the first four, gateways 1 to 4 have one each of the other four.
const (
	oneGateway   = "one"
	fourGateways = "four"
)

// cell is one load: processes of each client, and their operations.
type cell struct {
	gateways                       string
	clients, processes, luns, size int
	op                             string
}

func (c cell) parameters() map[string]any {
	return map[string]any{"op": c.op, "size": c.size, "clients": c.clients, "processes": c.processes, "luns": c.luns,
		"gateways": c.gateways, "ports": ports, "port_bits_per_second": portRate}
}

func main() { harness.Main("scale", run) }

func run(ctx context.Context, b *harness.Bench) error {
	starting, started := context.WithTimeout(ctx, readyTime)
	defer started()
	var fabrics []string
	for i := range ports {
		fabrics = append(fabrics, fabric(i))
	}
	made, err := cluster.Start(starting, cluster.Options{Programs: b.Programs, Directory: b.Directory, Gateways: 1 + ports,
		Volumes: 2 * ports, Replicas: 1, Fabrics: fabrics, VolumeMiB: span >> 20, GatewayEnvironment: harness.SteadyGateways})
	if err != nil {
		return err
	}
	defer func() { _ = made.Close() }() // its namespaces end with this process in any case
	p := &plant{Bench: b, Cluster: made}
	if err := p.prepare(starting); err != nil {
		return fmt.Errorf("%w\n%s", err, made.Logs(10))
	}
	all := cells(b.Mode)
	for round := range b.RoundsOr(1, 1, 5) {
		order := slices.Clone(all)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			if err := p.measure(ctx, round, c); err != nil {
				return fmt.Errorf("%+v: %w\n%s", c, err, made.Logs(10))
			}
		}
	}
	return aims(b)
}

// cells: one client by processes, sizes and LUNs; then more clients, on the ports of one gateway and of four.
func cells(m harness.Mode) []cell {
	const kib, mib = 1 << 10, 1 << 20
	sizes := harness.Pick(m, []int{256 * kib}, []int{kib, 256 * kib, 16 * mib}, []int{kib, 4 * kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib})
	processes := harness.Pick(m, []int{1}, []int{1, 10}, []int{1, 2, 4, 6, 8, 10})
	luns := harness.Pick(m, []int{4}, []int{4}, []int{2, 3, 4})
	count := harness.Pick(m, []int{1, 8}, []int{1, 2, 3, 4, 5, 6, 7, 8}, []int{1, 2, 3, 4, 5, 6, 7, 8})
	var all []cell
	for _, op := range []string{"read", "write"} {
		for _, size := range sizes {
			for _, p := range processes {
				if m == harness.Short && p > 1 && size > mib {
					continue // a command of each takes half a minute
				}
				all = append(all, cell{oneGateway, 1, p, 1, size, op})
			}
		}
		for _, l := range luns {
			all = append(all, cell{oneGateway, 1, 10, l, 256 * kib, op})
		}
		for _, n := range count {
			for _, where := range []string{oneGateway, fourGateways} {
				all = append(all, cell{where, n, 4, ports, 256 * kib, op})
			}
		}
	}
	return all
}

func (p *plant) measure(ctx context.Context, round int, c cell) error {
	results, err := p.Drive(ctx, p.loads(c))
	if err != nil {
		return err
	}
	figures := harness.Sum(results)
	if c.size >= large {
		figures["bytes_per_second"] = rate(c, figures["latency_mean_s"])
		delete(figures, "slowest_client_bytes_per_second")
	}
	figures["ports_share"] = figures["bytes_per_second"] / (float64(min(c.clients, ports)) * harness.Payload(portRate))
	fmt.Printf("round %d, %-5s %8d, %d clients x %2d processes, %d LUNs, %-4s gateways: %6.2f MB/s, %3.0f %% of the ports, %.1f us of the gateways per command\n",
		round+1, c.op, c.size, c.clients, c.processes, c.luns, c.gateways, figures["bytes_per_second"]/1e6, 100*figures["ports_share"],
		1e6*figures["target_cpu_s_per_command"])
	return p.Record(harness.Measurement{Subject: "sluice", Parameters: c.parameters(), Round: round + 1, Figures: figures,
		Session: results[0].Negotiated()})
}

// aims: the ports are the bottleneck, even for one process with large commands, and throughput does not decrease as clients are
// added.
func aims(b *harness.Bench) error {
	for _, op := range []string{"read", "write"} {
		shares := b.Values("ports_share", "sluice", map[string]any{"op": op, "size": 256 << 10, "clients": 1, "processes": 1, "luns": 1})
		if err := b.Aim(fmt.Sprintf("share of its port that one process has, %ss of 256 KiB (the study: 0.26 and 0.34)", op), harness.Median(shares),
			">= 0.9"); err != nil {
			return err
		}
		for _, where := range []string{oneGateway, fourGateways} {
			worst, at := 0.0, 0
			for n := 1; n <= clients; n++ {
				share := b.Values("ports_share", "sluice", map[string]any{"op": op, "clients": n, "processes": 4, "luns": ports, "gateways": where})
				if m := harness.Median(share); len(share) > 0 && (at == 0 || m < worst) {
					worst, at = m, n
				}
			}
			if err := b.Aim(fmt.Sprintf("least share of the ports in use with 1 to 8 clients, %ss of 256 KiB, %s gateways (at %d clients)", op, where,
				at), worst, ">= 0.93"); err != nil {
				return err
			}
		}
	}
	return nil
}
