package orchestrator

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (o *owning) move(next model.GatewayRef, reason string) *Action {
	return o.change(reason, func(is model.Ownership) (model.Ownership, error) { return is.Move(next) },
		&Event{false, reason, fmt.Sprintf("moving from gateway %d to gateway %d", o.is.Owner.Number, next.Number)})
}

// planned makes the move that placement wants, a few at a time.
func (o *owning) planned() *Action {
	number := o.plan.owners[o.volume.Meta.Name]
	g, from := o.GatewayByNumber(number), o.GatewayByNumber(o.is.Owner.Number)
	if number == o.is.Owner.Number || g == nil || from == nil || leaves(g) {
		return nil
	}
	next, present := o.connected(number)
	if !present || !o.mayOwn(g, next) {
		return nil
	}
	if f := o.failures[o.volume.Meta.Name][number]; f.count > 0 {
		if left := backoff(f.count) - o.now.Sub(f.at); left > 0 {
			o.d.wait(left)
			return nil
		}
	}
	reason, limit := reasonRebalance, RebalanceMoves
	leaving := o.target != nil && !slices.Contains(o.plan.paths[o.target.Meta.Name].Gateways, from.Status.Number)
	if leaves(from) || leaving {
		reason, limit = reasonDrain, DrainMoves
	} else if left := RequestedMoveHolds - o.now.Sub(o.volume.Status.MovedAt); left > 0 {
		o.d.wait(left)
		return nil
	}
	if o.moving(reason, from.Status.Number) >= limit {
		o.d.wait(MinRetry)
		return nil
	}
	a := o.move(next, reason)
	a.Own.Counted = true
	return a
}

// moving counts moves that have yet to end: from a gateway that drains, or in the whole cluster.
func (v *View) moving(reason string, from uint32) int {
	if reason == reasonDrain {
		return v.moves[from]
	}
	count := 0
	for _, moves := range v.moves {
		count += moves
	}
	return count
}

func (o *owning) stepMoving() *Action {
	nextGone := !o.is.Next.IsZero() && o.Standing(o.is.Next) != Present
	if _, ended := o.ended(); ended && !nextGone {
		return o.released(reasonReleased, nil)
	} else if !ended && o.Standing(o.is.Owner) == Gone {
		return o.replaceOwner()
	}
	if o.is.Next.IsZero() {
		if o.wanted() {
			return o.change(reasonExported, model.Ownership.CancelMove, nil)
		}
		return o.renew() // otherwise it has all the time it needs
	}
	if nextGone {
		return o.failed(o.is.Next, o.change(reasonNextGone, model.Ownership.CancelMove, &Event{true, reasonNextGone,
			fmt.Sprintf("gateway %s, the next owner, is gone", o.is.Next)}))
	}
	if left := MoveTimeout - o.now.Sub(o.is.Since); left > 0 {
		o.d.wait(left)
		return nil
	}
	if !o.local() { // it has begun to let go, and cannot go back
		return o.failed(o.is.Owner, o.change(reasonMoveTimeout, model.Ownership.BeginFence, &Event{true, reasonMoveTimeout,
			fmt.Sprintf("gateway %d did not release the volume within %s: it is shut out", o.is.Owner.Number, MoveTimeout)}))
	}
	return o.failed(o.is.Next, o.change(reasonMoveTimeout, model.Ownership.CancelMove, &Event{true, reasonMoveTimeout,
		fmt.Sprintf("gateway %d did not release the volume within %s: it keeps it", o.is.Owner.Number, MoveTimeout)}))
}
