package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
	"sluice.dev/sluice/tests/robustness/history"
)

const standaloneTarget = "iqn.2026-11.dev.sluice:robust"

// standalone is one gateway with two portals on different fabrics: a host has two paths to it.
type standalone struct {
	images    []string // by LUN, below their devices
	network   *netns.Network
	gateway   *netns.Process
	addresses []string
	clock     *wallClock
	keeper    *keeper
	hung      []netns.Undo // reactors that hang for good
	disks     []*device
}

const standaloneLUNs = 2

// The second LUN has a backend that is sometimes slow: for longer than hosts wait before a retry after a reset, so that an original
// is still in progress when its retry arrives (R5). A slow device would not do: Linux executes the writes to a file one after the
// other.
const slowSecondLUN = "lun1.img=delay-every=90;delay-ms=2600"

const (
	gatewayNode     = "gw-1"
	gatewayReactors = 2 // package netns starts as many
	iscsiPort       = 3260
)

func startStandalone(ctx context.Context, gateway, faults, directory string, note noter) (system, error) {
	network, err := netns.NewNetwork([]string{"red", "blue"}, []string{gatewayNode})
	if err != nil {
		return nil, err
	}
	s := &standalone{network: network}
	setup := netns.Standalone{Program: gateway, Faults: faults, Name: gatewayNode, Node: gatewayNode, Directory: directory,
		Target: standaloneTarget}
	for _, fabric := range network.Fabrics {
		s.addresses = append(s.addresses, fmt.Sprintf("%s:%d", network.Address(gatewayNode, fabric), iscsiPort))
	}
	setup.Listen = s.addresses
	for lun := range uint16(standaloneLUNs) { // each on a device of its own
		d, err := mountDevice(directory, fmt.Sprintf("device-%d", lun+1), lun)
		if err != nil {
			note("devices without faults: %v", err)
			d.at, d.backing = directory, directory
		} else {
			s.disks = append(s.disks, d)
		}
		s.images = append(s.images, filepath.Join(d.backing, imageOf(lun)))
		setup.LUNs = append(setup.LUNs, fmt.Sprintf("backend: file, path: %s, size: 1MiB", filepath.Join(d.at, imageOf(lun))))
	}
	if s.clock, setup.Environment, err = newClock(directory, gatewayNode); err == nil {
		s.gateway, err = setup.Process()
	}
	if err == nil {
		err = s.gateway.Start()
	}
	if err == nil {
		err = netns.UntilListens(ctx, s.gateway, s.addresses[0])
	}
	if err != nil {
		return nil, errors.Join(err, s.gateway.Kill(), closeDevices(s.disks), network.Close())
	}
	s.keeper = newKeeper([]*netns.Process{s.gateway}, note)
	return s, nil
}

func (s *standalone) portals() []string { return s.addresses }
func (s *standalone) target() string    { return standaloneTarget }
func (s *standalone) initiator(i int) string {
	return fmt.Sprintf("iqn.2026-11.dev.sluice:host%d", i+1)
}
func (s *standalone) luns() []uint16               { return []uint16{0, 1} }
func (s *standalone) places() []history.Place      { return blocks(16, 6) }
func (s *standalone) devices() []*device           { return s.disks }
func (s *standalone) settle(context.Context) error { return nil }
func (s *standalone) mismatches() []string         { return nil }

func (s *standalone) faults(hosts []*initiator.Multipath) []*fault {
	all := []*fault{
		s.keeper.killed(s.gateway, 2, 3*time.Second),
		{name: "SIGSTOP of " + gatewayNode, on: gatewayNode, kind: "freeze", weight: 2, shortest: 100 * time.Millisecond, longest: 9 * time.Second,
			do:   s.gateway.Freeze,
			undo: func(context.Context) error { return s.gateway.Signal(syscall.SIGCONT) }},
	}
	all = append(append(all, s.clock.jumps(longestJump)...), deviceFaults(s.disks)...)
	for reactor := range gatewayReactors {
		all = append(all, permanentHang(s.gateway, reactor, func(release netns.Undo) { s.hung = append(s.hung, release) }))
	}
	for i, fabric := range s.network.Fabrics {
		for reactor := range gatewayReactors {
			all = append(all, leftHung(s.network, s.gateway, reactor, fabric))
		}
		all = append(all, linkFaults(s.network, gatewayNode, fabric, iscsiPort)...)
		for j, multipath := range hosts {
			all = append(all, hostFaults(multipath.Paths[i], j, s.luns())...)
		}
	}
	return all
}

func imageOf(lun uint16) string { return fmt.Sprintf("lun%d.img", lun) }

const stopPatience = 15 * time.Second

func (s *standalone) end() []string {
	s.keeper.end()
	var bad []string
	if err := s.gateway.Stop(stopPatience); err != nil {
		bad = append(bad, err.Error()+"\n"+s.gateway.LogTail(20))
	}
	for _, release := range s.hung { // for their tracers: the process has ended
		if err := release(); err != nil {
			bad = append(bad, err.Error())
		}
	}
	s.hung = nil
	for _, status := range s.gateway.Unexpected() {
		if !strings.HasPrefix(status, "signal: killed") { // by its watchdog
			bad = append(bad, s.gateway.Name+" ended by itself: "+status)
		}
	}
	return bad
}

func (s *standalone) disk(place history.Place) ([]byte, bool, error) {
	file, err := os.Open(s.images[place.LUN])
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = file.Close() }() // it was only read
	block := make([]byte, history.BlockSize)
	_, err = file.ReadAt(block, int64(place.Block)*history.BlockSize)
	return block, true, err
}

func (s *standalone) close() error {
	s.keeper.end()
	for _, d := range s.disks {
		d.Resume() // a process cannot end before its calls do
	}
	return errors.Join(s.gateway.Kill(), closeDevices(s.disks), s.network.Close())
}
