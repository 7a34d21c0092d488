package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"sluice.dev/sluice/tests/host"
	"sluice.dev/sluice/tests/robustness/history"
	"sluice.dev/sluice/tests/world"
)

const (
	target   = "iqn.2026-11.dev.sluice:robust"
	lunBytes = 1 << 20
)

// standalone is one gateway with two portals, each on a fabric of its own: a host has two paths to it.
type standalone struct {
	directory string
	network   *world.Network
	gateway   *world.Process
	portals   []string
	clock     string // file that shifts the gateway's wall clock; empty: no libfaketime here
	held      atomic.Bool
	stop      context.CancelFunc
	over      chan struct{}
	note      noter
}

type noter func(format string, arguments ...any)

// The second LUN has a slow disk.
var standaloneLUNs = []string{
	`backend: file, path: %s/lun0.img, size: 1MiB`,
	`backend: file, path: %s/lun1.img, size: 1MiB, fault: "delay-every=5;delay-ms=70"`,
}

const (
	fabricRed, fabricBlue = "red", "blue"
	gatewayNode           = "gw-1"
	iscsiPort             = 3260
)

func startStandalone(ctx context.Context, program, directory string, note noter) (*standalone, error) {
	network, err := world.NewNetwork([]string{fabricRed, fabricBlue}, []string{gatewayNode})
	if err != nil {
		return nil, err
	}
	s := &standalone{directory: directory, network: network, note: note, over: make(chan struct{})}
	setup := world.Standalone{Program: program, Name: gatewayNode, Node: gatewayNode, Directory: directory, Target: target}
	for _, fabric := range network.Fabrics {
		s.portals = append(s.portals, fmt.Sprintf("%s:%d", network.Address(gatewayNode, fabric), iscsiPort))
	}
	setup.Listen = s.portals
	for _, lun := range standaloneLUNs {
		setup.LUNs = append(setup.LUNs, fmt.Sprintf(lun, directory))
	}
	if setup.Environment, err = s.fakeClock(); err != nil {
		return nil, err
	}
	if s.gateway, err = setup.Process(); err != nil {
		return nil, err
	}
	if err := s.gateway.Start(); err != nil {
		return nil, err
	}
	if err := world.UntilListens(ctx, s.gateway, s.portals[0]); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(context.Background())
	go s.supervise(ctx)
	return s, nil
}

// supervise starts the gateway again when it has ended by itself, as a service manager does.
func (s *standalone) supervise(ctx context.Context) {
	defer close(s.over)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.gateway.Done():
		}
		if sleep(ctx, 100*time.Millisecond) != nil {
			return
		}
		if !s.held.Load() && !s.gateway.Running() {
			if err := s.gateway.Start(); err != nil {
				s.note("%v", err)
			}
		}
	}
}

// fakeClock lets libfaketime shift the gateway's CLOCK_REALTIME by what a file says; other clocks can't jump on a real machine.
func (s *standalone) fakeClock() ([]string, error) {
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		return nil, err
	}
	s.clock = filepath.Join(s.directory, "clock")
	return []string{"LD_PRELOAD=" + libraries[0], "FAKETIME_TIMESTAMP_FILE=" + s.clock, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1"}, s.setClock("+0")
}

func (s *standalone) setClock(shift string) error {
	next := s.clock + ".new"
	if err := os.WriteFile(next, []byte(shift+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.clock)
}

func (s *standalone) faults(hosts []*host.Multipath) []*fault {
	all := []*fault{
		{name: "SIGKILL of the gateway", on: gatewayNode, kind: "kill", weight: 2, shortest: 100 * time.Millisecond, longest: 3 * time.Second,
			do: func(context.Context) error {
				s.held.Store(true)
				return s.gateway.Kill()
			},
			undo: func(context.Context) error {
				s.held.Store(false)
				return s.gateway.Start()
			}},
		{name: "SIGSTOP of the gateway", on: gatewayNode, kind: "freeze", weight: 2, shortest: 100 * time.Millisecond, longest: 9 * time.Second,
			do:   s.gateway.Freeze,
			undo: func(context.Context) error { return s.gateway.Signal(syscall.SIGCONT) }},
	}
	if s.clock != "" {
		for _, shift := range []string{"+3600", "-86400"} {
			all = append(all, &fault{name: "wall clock of the gateway jumps by " + shift + " s", on: "clock", kind: "clock", weight: 1,
				shortest: 100 * time.Millisecond, longest: 3 * time.Second,
				do:   func(context.Context) error { return s.setClock(shift) },
				undo: func(context.Context) error { return s.setClock("+0") }})
		}
	}
	for i, fabric := range s.network.Fabrics {
		all = append(all, linkFaults(s.network, gatewayNode, fabric)...)
		for j, multipath := range hosts {
			all = append(all, hostFaults(multipath.Paths[i], j)...)
		}
	}
	return all
}

// linkFaults are those of one node's link to one fabric.
func linkFaults(network *world.Network, node, fabric string) []*fault {
	link := node + "'s link to " + fabric
	broken := func(name, kind string, shortest, longest time.Duration, do func() (world.Undo, error)) *fault {
		var undo world.Undo
		return &fault{name: name, on: link, kind: kind, weight: 1, shortest: shortest, longest: longest,
			do: func(context.Context) (err error) {
				undo, err = do()
				return err
			},
			undo: func(context.Context) error { return undo() }}
	}
	const brief, long = 100 * time.Millisecond, 12 * time.Second
	return []*fault{
		broken("cut of "+link, "cut", brief, long, func() (world.Undo, error) { return network.CutLink(node, fabric) }),
		broken("loss of all that comes in on "+link, "one-way loss", time.Second, long,
			func() (world.Undo, error) { return network.Drop(node, fabric, 100, world.In) }),
		broken("loss of all that goes out on "+link, "one-way loss", time.Second, long,
			func() (world.Undo, error) { return network.Drop(node, fabric, 100, world.Out) }),
		broken("loss of 30 % on "+link, "packet loss", time.Second, 6*time.Second,
			func() (world.Undo, error) { return network.Drop(node, fabric, 30, world.In, world.Out) }),
		broken("forged resets on "+link, "forged reset", 20*time.Millisecond, 300*time.Millisecond,
			func() (world.Undo, error) { return network.ForgeResets(node, fabric, iscsiPort) }),
	}
}

const unitResetTimeout = time.Second // the faults that follow don't wait for longer

// hostFaults are what a host does to one of its paths.
func hostFaults(path *host.Path, number int) []*fault {
	name := fmt.Sprintf("host %d, path %s", number+1, path.Portal)
	return []*fault{
		{name: name + ": reset by the host", on: name, kind: "reset by the host", weight: 1, do: func(context.Context) error {
			if session := path.Session(); session != nil {
				session.Reset()
			}
			return nil
		}},
		{name: name + ": LOGICAL UNIT RESET", on: name, kind: "unit reset", weight: 1, do: func(ctx context.Context) error {
			session := path.Session()
			if session == nil {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, unitResetTimeout)
			defer cancel()
			var lost *host.LostError
			if err := session.ResetUnit(ctx, 0); !errors.As(err, &lost) {
				return err
			}
			return nil // the path went meanwhile
		}},
	}
}

func (s *standalone) places() []history.Place { return blocks(16, 6) }

// blocks are the first of LUN 0, 1 and so on: several of them share a physical block.
func blocks(counts ...int) []history.Place {
	var all []history.Place
	for lun, count := range counts {
		for block := range count {
			all = append(all, history.Place{LUN: uint16(lun), Block: uint64(block)})
		}
	}
	return all
}

// end stops the gateway in order and gives access to what it has left on disk.
func (s *standalone) end() error {
	s.held.Store(true)
	s.stop()
	<-s.over
	return s.gateway.Stop(15 * time.Second)
}

func (s *standalone) disk(place history.Place) ([]byte, error) {
	file, err := os.Open(filepath.Join(s.directory, fmt.Sprintf("lun%d.img", place.LUN)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	block := make([]byte, history.BlockSize)
	_, err = file.ReadAt(block, int64(place.Block)*history.BlockSize)
	return block, err
}

func (s *standalone) close() error {
	s.stop()
	<-s.over
	return errors.Join(s.gateway.Kill(), s.network.Close())
}
