package decide

import (
	"cmp"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Reasons of a volume's Progressing condition that the last request leaves, until the next request.
const (
	// The move was not begun.
	reasonMoveRefused = model.ReasonMoveRefused
	// The move was begun, but another gateway became the owner.
	reasonMoveFailed = model.ReasonMoveFailed
	// The rollback failed: the volume has its previous content.
	reasonRollBackFailed = model.ReasonRollBackFailed
)

const askAgainHint = "; then ask again: sluicectl volume move"

// carryOut makes the move that a user requested, or ends the request with the reason why it cannot.
func (o *owning) carryOut(request *model.MoveRequest) Action {
	next, refusal := o.destination(request.Gateway)
	switch {
	case refusal != "":
		return o.refuse(*request, refusal)
	case next == o.ownership.Owner:
		return o.alreadyThere(*request)
	}
	a := o.move(next, reasonMoveRequest)
	a.Request = request
	return a
}

// destination returns the gateway of a requested move by number, 0 for the best one that is not the owner; or why there is none,
// and the remedy.
func (o *owning) destination(number uint32) (next model.GatewayRef, refusal string) {
	if number == 0 {
		next, ok := o.candidate(o.ownership.Owner)
		if !ok {
			refusal = "no other gateway can own the volume now: it has to have a stream, be in the target's path set, reach " +
				"the storage pool, and not have failed to open the volume just before. See what is wrong: sluicectl doctor"
		}
		return next, refusal
	}
	g := o.GatewayByNumber(number)
	if g == nil {
		return next, fmt.Sprintf("gateway %s is not there any more: name another one", o.gatewayName(number))
	}
	name := g.Meta.Name
	if g.Status.Health == model.GatewayNotServing {
		return next, fmt.Sprintf("hosts or other gateways do not reach gateway %s. See why: sluicectl gateway describe %s%s", name, name, askAgainHint)
	}
	if leaves(g) {
		return next, fmt.Sprintf("gateway %s is cordoned or drained: sluicectl gateway undrain %s%s", name, name, askAgainHint)
	}
	next, present := o.connected(number)
	if !present {
		return next, fmt.Sprintf("gateway %s has no stream to the control plane. See why: sluicectl gateway describe %s%s",
			name, name, askAgainHint)
	}
	if obstacle := o.obstacle(g, next); obstacle != "" {
		return next, fmt.Sprintf("gateway %s %s: name another one, or let it come to that%s", name, obstacle, askAgainHint)
	}
	return next, ""
}

// refuse ends a request that cannot be carried out.
func (o *owning) refuse(asked model.MoveRequest, why string) Action {
	refusal := &model.Refusal{Reason: reasonMoveRefused, Message: why} // it stays in the volume's status
	return o.closeRequest(asked, Event{true, reasonMoveRefused, why}, func(status *model.VolumeStatus) { status.Refusal = refusal })
}

// alreadyThere ends a request for the gateway that owns the volume already. It counts as carried out, so that rebalancing leaves
// the volume there.
func (o *owning) alreadyThere(asked model.MoveRequest) Action {
	return o.closeRequest(asked, Event{false, "Moved", fmt.Sprintf("gateway %s owns the volume already", o.gatewayName(o.ownership.Owner.Number))},
		func(status *model.VolumeStatus) { status.Refusal, status.MovedAt = nil, asked.Since })
}

// closeRequest removes a request and records its result, unless a user made another request meanwhile.
func (o *owning) closeRequest(asked model.MoveRequest, event Event, note func(*model.VolumeStatus)) Action {
	return modify(o.volume, func(object model.Object) bool {
		status := &object.(*model.Volume).Status
		if status.MoveRequest == nil || *status.MoveRequest != asked {
			return false
		}
		status.MoveRequest = nil
		note(status)
		return true
	}, &event)
}

// gatewayName returns the name in messages of a gateway that the decision is about; of any other gateway its number.
func (a *ChangeOwner) gatewayName(number uint32) string {
	if name := a.parties[number]; name != "" {
		return name
	}
	return fmt.Sprintf("number %d", number)
}

// follow updates the status of requested moves for a change of ownership to next: the change begins a requested move, or is a
// step of the one in progress.
func (a *ChangeOwner) follow(status *model.VolumeStatus, next model.Ownership, event *Event) {
	if request := status.MoveRequest; request != nil && a.Request != nil && *request == *a.Request {
		status.MoveRequest, status.MovedAt = nil, request.Since
		status.Move = &model.RequestedMove{To: next.Next.Number}
		return
	}
	if status.Move == nil {
		return
	}
	move := *status.Move
	if event != nil && event.Warning {
		move.Trouble = event.Message
	}
	status.Move = &move
	switch next.State {
	case model.Owned:
		status.Move = nil
		if next.Owner.Number != move.To {
			status.Refusal = &model.Refusal{Reason: reasonMoveFailed, Message: fmt.Sprintf(
				"gateway %s was to own the volume, and gateway %s does: %s%s", a.gatewayName(move.To), a.gatewayName(next.Owner.Number),
				cmp.Or(move.Trouble, "it was given to that one meanwhile"), askAgainHint)}
		}
	case model.Unowned:
		status.Move = nil
		status.Refusal = &model.Refusal{Reason: reasonMoveFailed, Message: "no target exports the volume any more"}
	}
}
