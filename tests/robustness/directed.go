package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

// The faults below cause deliberately what single faults cause by chance. A host is informed that its connection is gone while
// its earlier data on it is still unread somewhere, and is processed after the host has repeated the command elsewhere.

const (
	// unread is how long hosts continue to send to a stopped process.
	unread = 200 * time.Millisecond
	// Longer than hosts wait before a retry after a reset, and shorter than the time after which a gateway is declared dead.
	comesAliveSoonest, comesAliveLatest = 1700 * time.Millisecond, 2800 * time.Millisecond
	// If data is lost on the forwarding network at once, the kernel sends it again after 0.2, 0.6 and 1.4 s: here after the last
	// of these.
	healsSoonest, healsLatest = 1050 * time.Millisecond, 1250 * time.Millisecond
	// The watchdog kills within 2.5 s (limits::kWatchdogLimit).
	noticedSoonest, noticedLatest = 3 * time.Second, 5 * time.Second
	// A gateway counts as silent after 4 s (limits::kPeerSilence).
	isolatedShortest, isolatedLongest = 8 * time.Second, 12 * time.Second
)

// isolated: a gateway is disconnected from the cluster for long enough to be declared dead, while hosts still reach it.
func isolated(network *netns.Network, node string) *fault {
	link := node + "'s link to " + cluster.Internal
	return networkFault("isolation of "+node, link, "isolation", isolatedShortest, isolatedLongest,
		func() (netns.Undo, error) { return network.Drop(node, cluster.Internal, 100, netns.In, netns.Out) })
}

// undoAll undoes all faults, the last one first.
func undoAll(undos ...netns.Undo) netns.Undo {
	return func() error {
		var all []error
		for i := len(undos) - 1; i >= 0; i-- {
			all = append(all, undos[i]())
		}
		return errors.Join(all...)
	}
}

// forgeEverywhere answers all hosts of a node with resets that the node does not know of.
func forgeEverywhere(network *netns.Network, node string, fabrics []string) (netns.Undo, error) {
	var undos []netns.Undo
	for _, fabric := range fabrics {
		undo, err := network.ForgeResets(node, fabric, iscsiPort)
		if err != nil {
			return nil, errors.Join(err, undoAll(undos...)())
		}
		undos = append(undos, undo)
	}
	return undoAll(undos...), nil
}

// leftBehind is a fault in two steps: first the cause that delays hosts' commands, and shortly afterwards resets to their hosts.
func leftBehind(name, on, kind string, shortest, longest, between time.Duration, network *netns.Network, node string, fabrics []string,
	holdUp func(context.Context) (netns.Undo, error),
) *fault {
	var undo netns.Undo
	return &fault{name: name, on: on, kind: kind, weight: 1, shortest: shortest, longest: longest,
		do: func(ctx context.Context) error {
			goOn, err := holdUp(ctx)
			if err != nil {
				undo = nil
				return nil //nolint:nilerr // it was killed this moment, or is on its way up
			}
			if err := netns.Wait(ctx, between); err != nil {
				return errors.Join(err, goOn())
			}
			stop, err := forgeEverywhere(network, node, fabrics)
			if err != nil {
				return errors.Join(err, goOn())
			}
			undo = undoAll(goOn, stop)
			return nil
		},
		undo: func(context.Context) error {
			if undo == nil {
				return nil
			}
			return undo()
		}}
}

// leftFrozen: a process is stopped with unread commands, for longer than limits::kStallLimit.
func leftFrozen(network *netns.Network, p *netns.Process, fabrics []string) *fault {
	return leftBehind("SIGSTOP of "+p.Name+" and resets to its hosts", p.Name, "left frozen", comesAliveSoonest, comesAliveLatest, unread,
		network, p.Node, fabrics, func(ctx context.Context) (netns.Undo, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			goOn := func() error {
				if p.Running() {
					_ = p.Signal(syscall.SIGCONT) // it may have been killed just now
				}
				return nil
			}
			if err := p.Freeze(ctx); err != nil {
				return nil, errors.Join(err, goOn())
			}
			return goOn, nil
		})
}

// leftHung: one reactor of a process is stopped with unread commands while the others continue. Hosts on the other fabrics may
// use those.
func leftHung(network *netns.Network, p *netns.Process, reactor int, fabric string) *fault {
	thread := fmt.Sprintf("reactor-%d", reactor)
	return leftBehind(fmt.Sprintf("a hung %s of %s and resets to its hosts on %s", thread, p.Name, fabric), p.Name, "left hung",
		comesAliveSoonest, comesAliveLatest, unread, network, p.Node, []string{fabric}, func(context.Context) (netns.Undo, error) { return p.HangThread(thread) })
}

// permanentHang: one reactor of a process is stopped permanently. Its commands in flight hold their block ranges (R5) until the
// process is ended.
func permanentHang(p *netns.Process, reactor int, keep func(netns.Undo)) *fault {
	thread := fmt.Sprintf("reactor-%d", reactor)
	return &fault{name: thread + " of " + p.Name + " hangs for good", on: p.Name, kind: "hung for good", weight: 1,
		shortest: noticedSoonest, longest: noticedLatest,
		do: func(context.Context) error {
			release, err := p.HangThread(thread)
			if err == nil {
				keep(release)
			}
			return nil // it was killed just now, or is starting
		}}
}

// leftByTheDead: a gateway's forwarded commands are lost at first, then its process is killed. Its machine resets the hosts'
// connections, and they repeat the commands elsewhere before the network recovers. The sent data is in queues that no longer have
// a process.
func leftByTheDead(network *netns.Network, k *keeper, p *netns.Process) *fault {
	var heal netns.Undo
	return &fault{name: "loss of what " + p.Name + " forwards, and its SIGKILL", on: p.Name, kind: "left by the dead", weight: 1,
		shortest: healsSoonest, longest: healsLatest,
		do: func(ctx context.Context) (err error) {
			if heal, err = network.Drop(p.Node, cluster.Internal, 100, netns.Out); err != nil {
				return err
			}
			if err := netns.Wait(ctx, unread); err != nil {
				return errors.Join(err, heal())
			}
			k.held[p].Store(true)
			return p.Kill()
		},
		undo: func(context.Context) error {
			k.held[p].Store(false)
			return heal()
		}}
}

// delayedForwards: a gateway's forwarded commands are lost at first, and reach the owner after its host has repeated them.
func delayedForwards(network *netns.Network, p *netns.Process, fabrics []string) *fault {
	return leftBehind("loss of what "+p.Name+" forwards and resets to its hosts", p.Node+"'s link to "+cluster.Internal, "left on the way",
		healsSoonest, healsLatest, 20*time.Millisecond, network, p.Node, fabrics, func(context.Context) (netns.Undo, error) {
			return network.Drop(p.Node, cluster.Internal, 100, netns.Out)
		})
}
