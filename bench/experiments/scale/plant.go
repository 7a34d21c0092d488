package main

import (
	"context"
	"fmt"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
)

// plant is a cluster of one gateway that uses all four ports, and of four that use one each, with eight clients.
type plant struct {
	*harness.Bench
	*cluster.Cluster
}

func fabric(i int) string     { return fmt.Sprintf("port%d", i+1) }
func clientNode(i int) string { return fmt.Sprintf("h%d", i+1) }

// portOf returns the port of a client: ports are assigned in turn.
func portOf(client int) int { return client % ports }

func (p *plant) prepare(ctx context.Context) error {
	for i := range clients {
		at := portOf(i)
		if err := harness.AddNode(clientNode(i)); err != nil {
			return err
		}
		if err := harness.Plug(clientNode(i), fabric(at), "br-"+fabric(at), fmt.Sprintf("10.%d.0.%d", 1+at, 100+i), portRate); err != nil {
			return err
		}
	}
	for i := range 1 + ports {
		for at := range ports {
			if err := harness.ShapeBoth(cluster.GatewayName(i), fabric(at), portRate); err != nil {
				return err
			}
		}
	}
	if err := p.WaitReady(ctx); err != nil {
		return err
	}
	for volume := range p.Volumes {
		if err := p.Bring(ctx, volume, ownerOfVolume(volume)); err != nil {
			return err
		}
	}
	return nil
}

// ownerOfVolume returns the gateway of a volume.
func ownerOfVolume(volume int) int {
	if volume < ports {
		return 0
	}
	return 1 + volume - ports
}

// pathOf returns a client's path to its LUN number n: the portal of the owner on the client's fabric.
func (p *plant) pathOf(c cell, client, n int) (portal string, lun int) {
	at := portOf(client)
	if c.gateways == fourGateways {
		return p.Portals(1 + at)[at], ports + at
	}
	return p.Portals(0)[at], (at + n) % ports
}

// loads returns the load of each client: all processes on one LUN, or, for a single client, divided among several.
func (p *plant) loads(c cell) []harness.Load {
	var pids []int
	for i := range 1 + ports {
		if (i == 0) == (c.gateways == oneGateway) {
			pids = append(pids, p.Gateways[i].Pid())
		}
	}
	warmup, seconds := p.windows(c)
	luns := 1
	if c.clients == 1 && c.processes == 10 {
		luns = c.luns
	}
	var all []harness.Load
	for client := range c.clients {
		for n := range luns {
			portal, lun := p.pathOf(c, client, n)
			depth := c.processes*(n+1)/luns - c.processes*n/luns
			all = append(all, harness.Load{Node: clientNode(client), Portal: portal, Target: cluster.Target, LUN: lun,
				Initiator: fmt.Sprintf("%s%d", cluster.Initiator, client+1), Op: c.op, Size: c.size, Depth: depth, Sequential: true,
				Span: span, Warmup: warmup, Seconds: seconds, Watch: pids})
		}
	}
	return all
}

// large commands are few, so their rate is computed from their duration.
const large = 1 << 20

// windows returns the times before and during the measurement. The first commands of all processes, which are sent at once, end
// before it, and it covers as many again.
func (p *plant) windows(c cell) (warmup, seconds float64) {
	turn := float64(c.size*c.processes) / harness.Payload(portRate)
	return harness.Pick(p.Mode, 0.3, 0.4, 1) + turn, harness.Pick(p.Mode, 0.4, 0.8, 3) + 2*turn
}

// rate returns the rate for a constant number of operations in flight, by Little's law.
func rate(c cell, latency float64) float64 { return float64(c.processes*c.size) / latency }
