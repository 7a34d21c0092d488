package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
	"sluice.dev/sluice/tests/robustness/history"
)

// clustered is a whole cluster: three gateways, two replicas of the control plane, three members of etcd.
type clustered struct {
	*cluster.Cluster
	keeper *keeper
	note   noter
	// clocks of the gateways, times of the replicas, and the disks under the pools, one each; nil if the machine does not support them.
	clocks []*wallClock
	times  []*wallClock
	disks  []*device
	// recorded makes the faults that replace recorded storage; nil if the volumes are in Ceph.
	recorded *recorded
}

const (
	clusterGateways = 3
	clusterReplicas = 2
	clusterVolumes  = 2 // of the workload; the last one is for reservations
	forwardingPort  = 3261
)

var hostFabrics = []string{cluster.Red, cluster.Blue}

func startCluster(ctx context.Context, options cluster.Options, note noter) (*clustered, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*recoverTime)
	defer cancel()
	var err error
	if options.Programs, err = filepath.Abs(options.Programs); err != nil {
		return nil, err
	}
	c := &clustered{note: note}
	if options.Ceph == nil {
		for i, pool := range []*string{&options.Pool, &options.OtherPool} { // volume i is in pool i, the last one in the first
			d, err := mountDevice(options.Directory, fmt.Sprintf("device-%d", i+1), uint16(i))
			if err != nil {
				note("devices without faults: %v", err)
			} else {
				c.disks = append(c.disks, d)
			}
			*pool = d.at
		}
	}
	options.Gateways, options.Volumes = clusterGateways, clusterVolumes+1
	options.GatewayEnvironment = func(i int) (environment []string, err error) {
		clock, environment, err := newClock(options.Directory, cluster.GatewayName(i))
		c.clocks = append(c.clocks, clock)
		return environment, err
	}
	if options.Replica != "" {
		options.ReplicaEnvironment = func(i int) (environment []string, err error) {
			clock, environment, err := newGoClock(options.Directory, fmt.Sprintf("cp-%d", i+1))
			c.times = append(c.times, clock)
			return environment, err
		}
	}
	made, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, errors.Join(err, closeDevices(c.disks))
	}
	c.Cluster = made
	if err := made.WaitReady(ctx); err != nil {
		_ = c.close() // why it is not ready is more important
		return nil, err
	}
	c.keeper = newKeeper(made.Processes(), note)
	return c, nil
}

func (c *clustered) mismatches() []string {
	wrong, err := c.recorded.end()
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

func (c *clustered) portals() []string       { return c.AllPortals() }
func (c *clustered) target() string          { return cluster.Target }
func (c *clustered) initiator(i int) string  { return fmt.Sprintf("%s%d", cluster.Initiator, i+1) }
func (c *clustered) luns() []uint16          { return []uint16{0, 1} }
func (c *clustered) devices() []*device      { return c.disks }
func (c *clustered) places() []history.Place { return blocks(12, 8) }

func (c *clustered) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	return c.WaitReady(ctx)
}

func (c *clustered) faults(hosts []*initiator.Multipath) []*fault {
	var all []*fault
	for i, gateway := range c.Gateways {
		all = append(all, c.keeper.killed(gateway, 3, 10*time.Second), frozen(gateway, 3, 20*time.Second))
		for _, fabric := range hostFabrics {
			all = append(all, linkFaults(c.Network, gateway.Node, fabric, iscsiPort)...)
		}
		all = append(all, linkFaults(c.Network, gateway.Node, cluster.Internal, forwardingPort)...)
		for _, other := range append([]string{cluster.ControlNode}, nodes(c.Gateways[i+1:])...) {
			pair := gateway.Node + " and " + other
			all = append(all, networkFault("partition between "+pair, pair, "partition", 500*time.Millisecond, 12*time.Second,
				func() (netns.Undo, error) { return c.Network.Partition(gateway.Node, other, cluster.Internal) }))
		}
		all = append(all, leftFrozen(c.Network, gateway, hostFabrics), delayedForwards(c.Network, gateway, hostFabrics),
			leftByTheDead(c.Network, c.keeper, gateway), isolated(c.Network, gateway.Node), c.drained(i))
		all = append(all, c.clocks[i].jumps(longestJump)...)
		for volume := range clusterVolumes {
			all = append(all, c.moved(volume, i))
		}
	}
	for _, process := range append(c.Replicas, c.Members...) {
		all = append(all, c.keeper.killed(process, 1, 10*time.Second), frozen(process, 1, 10*time.Second))
	}
	for _, clock := range c.times {
		all = append(all, clock.jumps(longestJumpOfReplica)...)
	}
	all = append(append(all, deviceFaults(c.disks)...), c.cephFaults()...)
	all = append(all, c.recorded.faults()...)
	for number, multipath := range hosts {
		for _, path := range multipath.Paths {
			all = append(all, hostFaults(path, number, c.luns())...)
		}
	}
	return all
}

func nodes(processes []*netns.Process) []string {
	var all []string
	for _, p := range processes {
		all = append(all, p.Node)
	}
	return all
}

// frozen: a gateway that takes over a local volume may kill the frozen one (R2); then nothing resumes.
func frozen(p *netns.Process, weight int, longest time.Duration) *fault {
	return &fault{name: "SIGSTOP of " + p.Name, on: p.Name, kind: "freeze", weight: weight, shortest: 100 * time.Millisecond, longest: longest,
		do: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_ = p.Freeze(ctx) // it may have been killed just now, or be starting
			return nil
		},
		undo: func(context.Context) error {
			if p.Running() {
				_ = p.Signal(syscall.SIGCONT) // see above
			}
			return nil
		}}
}

// moved requests a planned move. A refusal, or a missing control plane, is not a finding.
func (c *clustered) moved(volume, gateway int) *fault {
	name := fmt.Sprintf("move of %s to %s", cluster.VolumeName(volume), cluster.GatewayName(gateway))
	return &fault{name: name, on: cluster.VolumeName(volume), kind: "planned move", weight: 1, do: func(ctx context.Context) error {
		if err := c.Move(ctx, volume, gateway); err != nil {
			c.note("%s: %v", name, err)
		}
		return nil
	}}
}

func (c *clustered) drained(gateway int) *fault {
	name := cluster.GatewayName(gateway)
	return &fault{name: "drain of " + name, on: "drain of " + name, kind: "drain", weight: 1, shortest: 500 * time.Millisecond, longest: 6 * time.Second,
		do: func(ctx context.Context) error {
			if err := c.Drain(ctx, gateway); err != nil {
				c.note("drain of %s: %v", name, err)
			}
			return nil
		},
		undo: func(ctx context.Context) error {
			return netns.Until(ctx, func() error { return c.Undrain(ctx, gateway) })
		}}
}

func (c *clustered) end() []string {
	c.keeper.end()
	var bad []string
	if err := c.Stop(); err != nil {
		bad = append(bad, err.Error())
	}
	for _, p := range c.Processes() {
		for _, status := range p.Unexpected() {
			if !strings.HasPrefix(status, "signal: killed") { // by its watchdog, or by the gateway that takes over
				bad = append(bad, p.Name+" ended by itself: "+status)
			}
		}
	}
	return bad
}

// disk: the location of a volume in its pool is internal to the gateways.
func (c *clustered) disk(history.Place) ([]byte, bool, error) { return nil, false, nil }

func (c *clustered) close() error {
	if c.keeper != nil {
		c.keeper.end()
	}
	for _, d := range c.disks {
		d.Resume() // a process cannot end before its calls do
	}
	return errors.Join(c.Close(), closeDevices(c.disks))
}
