package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
	"sluice.dev/sluice/tests/robustness/history"
)

// brokenPromise: a scenario observed a forbidden result, as opposed to a step that could not be executed.
type brokenPromise string

func (b brokenPromise) Error() string { return string(b) }

// reservedLUN is the volume that the workload does not use.
const (
	reservedLUN            = clusterVolumes
	keyOfFirst, keyOfOther = 0xa, 0xb
)

// reserver is a host with one path, to the owner.
type reserver struct {
	initiator string
	isid      [6]byte
	session   *initiator.Session
}

func (r *reserver) logIn(ctx context.Context, portal string) error {
	return netns.Until(ctx, func() error {
		session, err := initiator.Login(ctx, initiator.Options{Portal: portal, Target: cluster.Target, Initiator: r.initiator, ISID: r.isid})
		if err != nil {
			return err
		}
		if r.session = session; r.served(ctx) {
			return nil
		}
		session.Close()
		return errors.New(portal + " does not serve the volume")
	})
}

func (r *reserver) served(ctx context.Context) bool {
	_, err := r.session.Good(ctx, initiator.ReservationKeys(reservedLUN))
	return err == nil
}

func (r *reserver) reserve(ctx context.Context, action byte, key, serviceKey uint64) error {
	_, err := r.session.Good(ctx, initiator.PersistentReserve(reservedLUN, action, initiator.WriteExclusiveRegistrantsOnly, key, serviceKey))
	return err
}

// writes reports whether a write is executed, or refused because of a reservation.
func (r *reserver) writes(ctx context.Context) (bool, error) {
	_, err := r.session.Good(ctx, initiator.Write(reservedLUN, 0, make([]byte, history.BlockSize), history.BlockSize))
	var answer *initiator.AnswerError
	if errors.As(err, &answer) && answer.Response.Status == initiator.StatusReservationConflict {
		return false, nil
	}
	return err == nil, err
}

// preempted: a host loses its reservation to another one; then the control plane is stopped, and the owner starts from its disk.
// The former holder must stay refused (R2: the record beside the data takes precedence).
func (c *clustered) preempted() []step {
	first := &reserver{initiator: c.initiator(hostCount), isid: [6]byte{0x80, 1}}
	other := &reserver{initiator: c.initiator(hostCount + 1), isid: [6]byte{0x80, 2}}
	var owner int
	var portal string
	expect := func(r *reserver, wanted bool) func(context.Context) error {
		return func(ctx context.Context) error {
			done, err := r.writes(ctx)
			if err == nil && done != wanted {
				return brokenPromise(fmt.Sprintf("a write of %s through %s is done: %v", r.initiator, portal, done))
			}
			return err
		}
	}
	return []step{
		{"two hosts register, the first one reserves", func(ctx context.Context) (err error) {
			if owner, err = c.Owner(ctx, reservedLUN); err != nil {
				return err
			}
			portal = c.Portals(owner)[0]
			return errors.Join(first.logIn(ctx, portal), other.logIn(ctx, portal),
				first.reserve(ctx, initiator.PRRegister, 0, keyOfFirst), other.reserve(ctx, initiator.PRRegister, 0, keyOfOther),
				first.reserve(ctx, initiator.PRReserve, keyOfFirst, 0))
		}},
		{"the holder writes", expect(first, true)},
		{"the other one preempts", func(ctx context.Context) error {
			return other.reserve(ctx, initiator.PRPreempt, keyOfOther, keyOfFirst)
		}},
		{"who was preempted is shut out", expect(first, false)},
		{"the control plane is lost, the owner killed and started again, the former holder writes", func(ctx context.Context) error {
			for _, process := range append(c.Replicas, c.Gateways[owner]) {
				c.keeper.held[process].Store(true)
				defer c.keeper.held[process].Store(false)
				if err := process.Kill(); err != nil {
					return err
				}
			}
			if err := c.Gateways[owner].Start(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, servedAgain)
			defer cancel()
			if err := errors.Join(first.logIn(ctx, portal), other.logIn(ctx, portal)); err != nil {
				return err
			}
			return errors.Join(expect(first, false)(ctx), expect(other, true)(ctx))
		}},
		{"the control plane is back", func(ctx context.Context) error {
			first.session.LogOut()
			other.session.LogOut()
			return c.WaitReady(ctx)
		}},
	}
}

const servedAgain = 30 * time.Second
