package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/tests/disk"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
	"sluice.dev/sluice/tests/robustness/history"
)

// device is a disk whose faults the run controls, and the LUNs on it. A system has two: a fault of one must not affect the other.
type device struct {
	name string
	// backing is the directory below the disk, at is its own.
	backing, at string
	luns        []uint16
	*disk.Disk

	mu    sync.Mutex
	spans []span
}

// span is the time of a fault of a device.
type span struct {
	kind     string
	from, to time.Time // to is zero while it lasts
}

// Kinds of faults of a device.
const (
	deviceHangs  = "device hangs"
	deviceReset  = "device hangs, its LUNs are reset"
	deviceDelays = "device delays"
	deviceFails  = "device fails"
	deviceFull   = "device is full"
)

var deviceKinds = []string{deviceHangs, deviceReset, deviceDelays, deviceFails, deviceFull}

const (
	// Each slowEvery-th call takes longer than hosts wait before a retry after a reset. So an original is still in progress when its
	// retry arrives (R5), and its owner may be declared dead meanwhile (R2).
	slowEvery = 40
	slowDelay = 1300 * time.Millisecond
	// hangsShortest is longer than the time after which a gateway calls a unit stuck (limits::kUnitStuck).
	hangsShortest, hangsLongest = 1800 * time.Millisecond, 4 * time.Second
	// After limits::kAbortBound (5 s) a reset is answered, and its commands are detached. Hosts drop a session after 10 s.
	resetShortest, resetLongest = 5600 * time.Millisecond, 7 * time.Second
	resetTimeout                = 9 * time.Second
	// refusesLongest bounds the time of errors: meanwhile no write to the device succeeds. Hosts send some in refusesShortest.
	refusesShortest, refusesLongest = 500 * time.Millisecond, 2 * time.Second
	delaysShortest, delaysLongest   = 500 * time.Millisecond, 4 * time.Second
	// heldWithin bounds the time until a device that hangs has a request. Hosts send one every few milliseconds.
	heldWithin = 5 * time.Second
	// answeredWithin is the time after a fault within which a request that met it may still be answered.
	answeredWithin = 2 * time.Second
)

// devicesDuration has room for every fault of two devices once, however long each lasts.
const devicesDuration = calmFirst + 2*(hangsLongest+resetLongest+delaysLongest+2*refusesLongest+5*gapLongest*4/3)

// mountDevice makes a device with these LUNs in a directory.
func mountDevice(directory, name string, luns ...uint16) (*device, error) {
	d := &device{name: name, backing: directory + "/" + name + ".backing", at: directory + "/" + name, luns: luns}
	var err error
	d.Disk, err = disk.Mount(d.backing, d.at)
	return d, err
}

func closeDevices(all []*device) error {
	var failed []error
	for _, d := range all {
		failed = append(failed, d.Close())
	}
	return errors.Join(failed...)
}

// begin records that a fault begins; the function records its end.
func (d *device) begin(kind string) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := len(d.spans)
	d.spans = append(d.spans, span{kind: kind, from: time.Now()})
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.spans[i].to = time.Now()
	}
}

// refused reports whether an operation may have met an error of the device.
func (d *device) refused(began, ended time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.spans, func(s span) bool {
		return (s.kind == deviceFails || s.kind == deviceFull) && ended.After(s.from) && (s.to.IsZero() || began.Before(s.to.Add(answeredWithin)))
	})
}

// hangs returns the times during which the device held requests.
func (d *device) hangs() []span {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.spans), func(s span) bool { return s.to.IsZero() || s.kind != deviceHangs && s.kind != deviceReset })
}

// fault is a fault of the device that `on` and `off` make.
func (d *device) fault(kind string, shortest, longest time.Duration, on, off func()) *fault {
	var end func()
	return &fault{name: d.name + ": " + kind, on: d.name, kind: kind, weight: 1, shortest: shortest, longest: longest,
		do: func(context.Context) error {
			end = d.begin(kind)
			on()
			return nil
		},
		undo: func(context.Context) error {
			off()
			end()
			return nil
		}}
}

// faults are those that leave the device able to end each call soon: a process on it can be killed meanwhile.
func (d *device) faults() []*fault {
	return []*fault{
		d.fault(deviceDelays, delaysShortest, delaysLongest, func() { d.Slow(slowEvery, slowDelay) }, func() { d.Slow(0, 0) }),
		d.fault(deviceFails, refusesShortest, refusesLongest, func() { d.Fail(syscall.EIO) }, func() { d.Fail(0) }),
		d.fault(deviceFull, refusesShortest, refusesLongest, func() { d.Fill(true) }, func() { d.Fill(false) }),
	}
}

// hang is a fault in which the device holds its requests. `meanwhile` runs once it has one, and ends soon after the fault. No other
// fault overlaps this one, so all other LUNs must be served.
func (d *device) hang(kind string, shortest, longest time.Duration, meanwhile func(context.Context) error) *fault {
	var end func()
	var over chan error
	return &fault{name: d.name + ": " + kind, on: d.name, kind: kind, weight: 1, shortest: shortest, longest: longest, alone: true,
		do: func(ctx context.Context) error {
			d.Hang()
			ctx, cancel := context.WithTimeout(ctx, heldWithin)
			defer cancel()
			err := netns.Until(ctx, func() error {
				if d.Waiting() == 0 {
					return errors.New("the device got no request")
				}
				return nil
			})
			end, over = d.begin(kind), make(chan error, 1)
			go func() { over <- meanwhile(context.WithoutCancel(ctx)) }()
			return err
		},
		undo: func(context.Context) error {
			end()
			d.Resume()
			return <-over
		}}
}

// hangFaults are those in which the device hangs; reset resets a LUN.
func (d *device) hangFaults(reset func(ctx context.Context, lun uint16) error) []*fault {
	return []*fault{
		d.hang(deviceHangs, hangsShortest, hangsLongest, func(context.Context) error { return nil }),
		d.hang(deviceReset, resetShortest, resetLongest, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, resetTimeout)
			defer cancel()
			for _, lun := range d.luns {
				if err := reset(ctx, lun); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func deviceFaults(devices []*device) []*fault {
	var all []*fault
	for _, d := range devices {
		all = append(all, d.faults()...)
	}
	return all
}

// resetByAnother resets a LUN as a host that has no commands. Commands of a host that resets get no answer, so its clients would wait.
func resetByAnother(s system) func(ctx context.Context, lun uint16) error {
	return func(ctx context.Context, lun uint16) error {
		session, err := initiator.Login(ctx, initiator.Options{Portal: s.portals()[0], Target: s.target(), Initiator: s.initiator(hostCount)})
		if err != nil {
			return err
		}
		defer session.Close()
		return session.ResetUnit(ctx, lun)
	}
}

// isolationFaults are all faults of devices: for runs without any other fault.
func isolationFaults(devices []*device, reset func(ctx context.Context, lun uint16) error) []*fault {
	all := deviceFaults(devices)
	for _, d := range devices {
		all = append(all, d.hangFaults(reset)...)
	}
	return all
}

// deviceOf returns the device that has a LUN; nil: it is on none of these.
func deviceOf(devices []*device, lun uint16) *device {
	i := slices.IndexFunc(devices, func(d *device) bool { return slices.Contains(d.luns, lun) })
	if i < 0 {
		return nil
	}
	return devices[i]
}

// notServed finds hosts that completed no operation on the LUNs of a device while another one hung. The operation must have begun
// after that one held a request, and ended before it continued.
func notServed(devices []*device, operations []history.Operation, at func(time.Time) int64, hosts int) []string {
	var found []string
	for _, hanging := range devices {
		for _, during := range hanging.hangs() {
			from, to := at(during.from), at(during.to)
			for _, other := range devices {
				for host := range hosts {
					if other != hanging && !slices.ContainsFunc(operations, func(o history.Operation) bool {
						return hostOf(o.Client) == host && slices.Contains(other.luns, o.Place.LUN) && o.Call > from && o.Return < to && !o.Maybe
					}) {
						found = append(found, fmt.Sprintf("host %d completed no operation on %s while %s hung, from %.3f to %.3f s", host+1, other.name,
							hanging.name, time.Duration(from).Seconds(), time.Duration(to).Seconds()))
					}
				}
			}
		}
	}
	return found
}

// notDone returns the kinds of faults that a device has not met.
func notDone(devices []*device) []string {
	var missing []string
	for _, d := range devices {
		for _, kind := range deviceKinds {
			if !slices.ContainsFunc(d.spans, func(s span) bool { return s.kind == kind }) {
				missing = append(missing, d.name+": "+kind)
			}
		}
		if d.Refused() == 0 {
			missing = append(missing, d.name+": no call was refused")
		}
	}
	return missing
}
