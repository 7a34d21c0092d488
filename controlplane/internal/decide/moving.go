package decide

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (o *owning) move(next model.GatewayRef, reason string) *ChangeOwner {
	return o.change(reason, func(from model.Ownership) (model.Ownership, error) { return from.Move(next) },
		&Event{false, reason, fmt.Sprintf("moving from gateway %s to gateway %s", o.gatewayName(o.ownership.Owner.Number), o.gatewayName(next.Number))})
}

// planned makes the move that placement has planned, a few at a time. Placement does not know which gateways reach a pool. If the
// planned gateway does not, a volume that has to leave goes to another one.
func (o *owning) planned() Action {
	delete(o.stayReasons, o.volume.Meta.Name)
	number := o.plan.owners[o.volume.Meta.Name]
	g, from := o.GatewayByNumber(number), o.GatewayByNumber(o.ownership.Owner.Number)
	if number == o.ownership.Owner.Number || g == nil || from == nil || leaves(g) {
		return nil
	}
	leaving := leaves(from) ||
		o.target != nil && !slices.Contains(o.plan.paths[o.target.Meta.Name].Gateways, from.Status.Number)
	next, present := o.connected(number)
	switch {
	case present && o.poolProblem(g, next) != "":
		if !leaving {
			return nil
		}
		if next, present = o.alternativeOwner(); !present {
			o.recordStayReason(fmt.Sprintf("gateway %s, which is to own it, %s, and no other gateway can own it now", g.Meta.Name,
				o.poolProblem(g, o.links[number].connection.Ref)))
			return nil
		}
	case leaving && !present:
		o.recordStayReason(fmt.Sprintf("gateway %s, which is to own it, has no stream to the control plane", g.Meta.Name))
		return nil
	case !present || !o.mayOwn(g, next):
		return nil
	}
	if f := o.failures[o.volume.Meta.Name][next.Number]; f.count > 0 {
		if left := Backoff(f.count) - o.now.Sub(f.at); left > 0 {
			o.decision.wait(left)
			return nil
		}
	}
	reason, limit := reasonRebalance, RebalanceMoves
	if leaving {
		reason, limit = reasonDrain, DrainMoves
	} else if left := RequestedMoveHolds - o.now.Sub(o.volume.Status.MovedAt); left > 0 {
		o.decision.wait(left)
		return nil
	}
	if o.moving(reason, from.Status.Number) >= limit {
		o.decision.wait(MinRetry)
		return nil
	}
	a := o.move(next, reason)
	a.Counted = true
	return a
}

// alternativeOwner returns a gateway that can own a volume that has to leave its owner, instead of the planned gateway.
func (o *owning) alternativeOwner() (model.GatewayRef, bool) {
	but := []model.GatewayRef{o.ownership.Owner}
	for _, g := range o.Gateways {
		if ref, present := o.connected(g.Status.Number); present && (leaves(g) || o.poolProblem(g, ref) != "") {
			but = append(but, ref)
		}
	}
	return o.candidate(but...)
}

// recordStayReason records why the volume does not leave its owner. The condition of a draining gateway shows it.
func (o *owning) recordStayReason(why string) {
	o.stayReasons[o.volume.Meta.Name] = why
	o.decision.wait(StayRetry)
}

// moving counts the moves that have not ended: from a gateway that drains, or in the whole cluster.
func (v *LeaderView) moving(reason string, from uint32) int {
	if reason == reasonDrain {
		return v.moves[from]
	}
	count := 0
	for _, moves := range v.moves {
		count += moves
	}
	return count
}

func (o *owning) stepMoving() Action {
	nextGone := !o.ownership.Next.IsZero() && o.Standing(o.ownership.Next) != Present
	if _, ended := o.ended(); ended && !nextGone {
		return o.released(reasonReleased, nil)
	} else if !ended && o.Standing(o.ownership.Owner) == Gone {
		return o.replaceOwner()
	}
	if o.ownership.Next.IsZero() {
		if o.wantsOwner() {
			return o.change(reasonExported, model.Ownership.CancelMove, nil)
		}
		return o.renew() // otherwise it has all the time that it needs
	}
	if nextGone {
		return o.failed(o.ownership.Next, o.change(reasonNextGone, model.Ownership.CancelMove, &Event{true, reasonNextGone,
			fmt.Sprintf("gateway %s, the next owner, is gone", o.incarnationName(o.ownership.Next))}))
	}
	if left := MoveTimeout - o.now.Sub(o.since); left > 0 {
		o.decision.wait(left)
		return nil
	}
	if !o.local() { // it has begun to release the volume, and cannot return
		return o.failed(o.ownership.Owner, o.change(reasonMoveTimeout, model.Ownership.BeginFence, &Event{true, reasonMoveTimeout,
			fmt.Sprintf("gateway %s did not release the volume within %s: it is shut out", o.gatewayName(o.ownership.Owner.Number), MoveTimeout)}))
	}
	return o.failed(o.ownership.Next, o.change(reasonMoveTimeout, model.Ownership.CancelMove, &Event{true, reasonMoveTimeout,
		fmt.Sprintf("gateway %s did not release the volume within %s: it keeps it", o.gatewayName(o.ownership.Owner.Number), MoveTimeout)}))
}
