package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
	"sluice.dev/sluice/tests/robustness/history"
)

type noter func(format string, arguments ...any)

// system is the system under test: one gateway, or a whole cluster.
type system interface {
	portals() []string
	target() string
	// initiator returns the name of host i, from 0, that the target admits.
	initiator(i int) string
	luns() []uint16
	places() []history.Place
	faults(hosts []*initiator.Multipath) []*fault
	// devices returns the devices whose faults the run controls; none if the machine cannot make them.
	devices() []*device
	// settle returns once the system itself reports that all faults are over.
	settle(ctx context.Context) error
	// end stops it and returns the problems of its processes.
	end() []string
	// mismatches ends the faults that replace recorded storage, and returns what was not refused.
	mismatches() []string
	// disk returns a block from the LUN's storage; false: that is not accessible.
	disk(place history.Place) ([]byte, bool, error)
	close() error
}

// blocks returns the first blocks of LUN 0, 1 and so on: several of them share a physical block.
func blocks(counts ...int) []history.Place {
	var all []history.Place
	for lun, count := range counts {
		for block := range count {
			all = append(all, history.Place{LUN: uint16(lun), Block: uint64(block)})
		}
	}
	return all
}

// keeper restarts processes that have ended by themselves, as a service manager does.
type keeper struct {
	held map[*netns.Process]*atomic.Bool
	stop context.CancelFunc
	over chan struct{}
}

const keeperInterval = 100 * time.Millisecond

func newKeeper(processes []*netns.Process, note noter) *keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &keeper{held: map[*netns.Process]*atomic.Bool{}, stop: stop, over: make(chan struct{})}
	for _, p := range processes {
		k.held[p] = &atomic.Bool{}
	}
	go func() {
		defer close(k.over)
		for netns.Wait(ctx, keeperInterval) == nil {
			for p, held := range k.held {
				if held.Load() || p.Running() {
					continue
				}
				note("%s has ended; it is started again", p.Name)
				if err := p.Start(); err != nil {
					note("%v", err)
				}
			}
		}
	}()
	return k
}

// end stops restarting processes.
func (k *keeper) end() {
	k.stop()
	<-k.over
}

// killed is a fault: SIGKILL, and a restart.
func (k *keeper) killed(p *netns.Process, weight int, longest time.Duration) *fault {
	return &fault{name: "SIGKILL of " + p.Name, on: p.Name, kind: "kill", weight: weight, shortest: 100 * time.Millisecond, longest: longest,
		do: func(context.Context) error {
			k.held[p].Store(true)
			return p.Kill()
		},
		undo: func(context.Context) error {
			k.held[p].Store(false)
			return nil
		}}
}

// linkHeals is later than hosts abandon a silent path, and earlier than TCP's fifth retransmission.
const linkHeals = 5600 * time.Millisecond

// linkFaults are the faults of one node's link to one fabric; resets are forged for one TCP port.
func linkFaults(network *netns.Network, node, fabric string, tcpPort int) []*fault {
	link := node + "'s link to " + fabric
	broken := func(name, kind string, shortest, longest time.Duration, do func() (netns.Undo, error)) *fault {
		return networkFault(name+link, link, kind, shortest, longest, do)
	}
	const brief, long = 100 * time.Millisecond, 12 * time.Second
	return []*fault{
		broken("cut of ", "cut", brief, long, func() (netns.Undo, error) { return network.CutLink(node, fabric) }),
		broken("loss of all that comes in on ", "one-way loss", time.Second, long,
			func() (netns.Undo, error) { return network.Drop(node, fabric, 100, netns.In) }),
		broken("loss of all that goes out on ", "one-way loss", time.Second, long,
			func() (netns.Undo, error) { return network.Drop(node, fabric, 100, netns.Out) }),
		broken("late delivery on ", "late delivery", 7*time.Second, 9*time.Second,
			func() (netns.Undo, error) { return network.DeliverLate(node, fabric, linkHeals) }),
		broken("loss of 30 % on ", "packet loss", time.Second, 6*time.Second,
			func() (netns.Undo, error) { return network.Drop(node, fabric, 30, netns.In, netns.Out) }),
		broken("forged resets on ", "forged reset", 20*time.Millisecond, 300*time.Millisecond,
			func() (netns.Undo, error) { return network.ForgeResets(node, fabric, tcpPort) }),
	}
}

func networkFault(name, on, kind string, shortest, longest time.Duration, do func() (netns.Undo, error)) *fault {
	var undo netns.Undo
	return &fault{name: name, on: on, kind: kind, weight: 1, shortest: shortest, longest: longest,
		do: func(context.Context) (err error) {
			undo, err = do()
			return err
		},
		undo: func(context.Context) error { return undo() }}
}

const unitResetTimeout = 2 * time.Second // the following faults do not wait longer

// hostFaults are a host's actions on one of its paths.
func hostFaults(path *initiator.Path, number int, luns []uint16) []*fault {
	name := fmt.Sprintf("host %d, path %s", number+1, path.Portal)
	return []*fault{
		{name: name + ": reset by the host", on: name, kind: "reset by the host", weight: 1, do: func(context.Context) error {
			if session := path.Session(); session != nil {
				session.Reset()
			}
			return nil
		}},
		{name: name + ": LOGICAL UNIT RESET of each LUN", on: name, kind: "unit reset", weight: 1, do: func(ctx context.Context) error {
			session := path.Session()
			if session == nil {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, unitResetTimeout)
			defer cancel()
			for _, lun := range luns {
				if err := session.ResetUnit(ctx, lun); err != nil && !isLost(err) {
					return err
				}
			}
			return nil // even if the path was lost meanwhile
		}},
	}
}
