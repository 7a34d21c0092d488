package decide

import (
	"fmt"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Reasons of changes of ownership.
const (
	reasonEpochLost    = "EpochFromGateway"
	reasonExported     = "Exported"
	ReasonUnexported   = "Unexported"
	reasonLocked       = "Locked"
	ReasonServing      = "Serving"
	reasonReleased     = "Released"
	reasonFailed       = model.ReasonOpenFailed
	reasonOwnerFenced  = "OwnerFenced"
	ReasonOwnerDead    = model.ReasonOwnerDead
	reasonOwnerSlow    = "OwnerSlow"
	reasonCandidate    = "CandidateGone"
	reasonMoveRequest  = model.ReasonMoveRequested
	reasonMoveTimeout  = "MoveTimeout"
	reasonNextGone     = "NextOwnerGone"
	reasonDrain        = "Drain"
	reasonRebalance    = "Rebalance"
	reasonFencedOut    = "Fenced"
	reasonNoCandidate  = model.ReasonNoGateway
	reasonPoolUnknown  = "StoragePoolMissing"
	reasonSourceLarger = "SourceLarger"
	reasonRestored     = "StoreRestored"
)

// owning is the input of a decision on a volume's ownership.
type owning struct {
	*LeaderView
	volume    *model.Volume
	ownership model.Ownership
	pool      *model.StoragePool
	target    *model.Target
	// since is the time from which this leader has decided on the present ownership.
	since    time.Time
	now      time.Time
	decision *Decision
}

func (v *LeaderView) owning(volume *model.Volume, now time.Time, decision *Decision) *owning {
	return &owning{LeaderView: v, volume: volume, ownership: volume.Status.Ownership, now: now, decision: decision,
		pool: v.StoragePools[volume.Spec.Pool], target: v.target(volume.Meta.Name)}
}

func (o *owning) local() bool { return o.pool.Spec.Local != nil }

// wantsOwner reports whether the volume should have an owner.
func (o *owning) wantsOwner() bool {
	return o.target != nil && !o.volume.Meta.Deleting() && o.volume.Status.CapacityBytes > 0 && o.volume.Status.RollBack == nil
}

// change returns the step to be made now.
func (o *owning) change(reason string, f func(model.Ownership) (model.Ownership, error), event *Event) *ChangeOwner {
	a := &ChangeOwner{Subject: about(o.volume), From: o.ownership, Change: f, Reason: reason}
	a.Event = event
	if move := o.volume.Status.Move; move != nil { // only then messages name them
		a.parties = map[uint32]string{}
		for _, number := range []uint32{move.To, o.ownership.Owner.Number, o.ownership.Next.Number} {
			a.parties[number] = o.gatewayName(number)
		}
	}
	return a
}

// decideOwnership makes at most one step. The next one is decided on the stored result.
func (v *LeaderView) decideOwnership(volume *model.Volume, now time.Time, decision *Decision) {
	o := v.owning(volume, now, decision)
	o.since = v.since(Key{model.KindVolume, volume.Meta.Name}, volume.Status.Ownership.Order, now)
	if o.pool == nil {
		return
	}
	step := o.adoptLaterState()
	if step == nil && !decision.NoOwner {
		step = o.step()
		if request := volume.Status.MoveRequest; step == nil && decision.NoOwner && request != nil {
			step = o.refuse(*request, "no gateway can own the volume now. See what is wrong: sluicectl doctor")
		}
	}
	if step != nil {
		if change, changes := step.(*ChangeOwner); changes {
			o.guardOnClients(change)
			v.setConditions(change, volume, now)
		}
		decision.add(step)
	}
}

// adoptLaterState adopts an epoch or order above the stored one: the store was restored from a backup.
func (o *owning) adoptLaterState() Action {
	var newest model.VolumeReport
	order := uint64(0)
	for _, r := range o.reports[o.volume.Meta.UID] {
		if !o.credible(r) {
			continue
		}
		order = max(order, r.Order)
		if newest.Gateway.IsZero() || r.Epoch > newest.Epoch || r.Epoch == newest.Epoch && r.State == model.VolumeServing {
			newest = r
		}
	}
	if newest.Epoch <= o.ownership.Epoch && order <= o.ownership.Order {
		return nil
	}
	serving := newest.State == model.VolumeServing
	if newest.Epoch > o.ownership.Epoch && !serving && !o.local() {
		o.decision.NoOwner = true
		return nil // the owner of that epoch is unknown and could not be fenced (R2: no takeover)
	}
	by, epoch := newest.Gateway, newest.Epoch
	return o.change(reasonEpochLost, func(from model.Ownership) (model.Ownership, error) {
		return from.Raise(by, epoch, order, serving)
	}, &Event{true, reasonEpochLost, fmt.Sprintf("gateway %s reported epoch %d, the store had %d; of order %d, the store "+
		"had %d: was it restored from a backup?", o.gatewayName(by.Number), epoch, o.ownership.Epoch, order, o.ownership.Order)})
}

// credible reports whether a gateway's report on lost epochs is possible. Only gateways of a local pool's node can have the lock
// of its data. Every epoch and order was assigned by a change of the store, or lies above the floor of a restore. Both are below
// the milliseconds since 1970. A greater number is invented, and would leave none to assign next.
func (o *owning) credible(r model.VolumeReport) bool {
	if limit := max(o.ownership.Floor, o.ownership.Epoch, o.ownership.Order, uint64(max(o.now.UnixMilli(), 0))); r.Epoch > limit || r.Order > limit {
		return false
	}
	g := o.GatewayByNumber(r.Gateway.Number)
	return !o.local() || g != nil && g.Spec.Node == o.pool.Spec.Local.Node
}

// renew assigns the volume to its owner again, if the store was restored and the owner does not report that it serves in this
// epoch. The owner may have received a later epoch that is lost. Then it ignores orders of this one and reports nothing.
func (o *owning) renew() Action {
	r, known := o.report(o.volume.Meta.UID, o.ownership.Owner)
	if !o.ownership.Lost() || known && r.Epoch == o.ownership.Epoch || o.Standing(o.ownership.Owner) != Present {
		return nil
	}
	since := o.links[o.ownership.Owner.Number].since
	if o.since.After(since) {
		since = o.since
	}
	if left := OpenTimeout - o.now.Sub(since); left > 0 {
		o.decision.wait(left)
		return nil
	}
	return o.change(reasonRestored, model.Ownership.Renew, &Event{true, reasonRestored, fmt.Sprintf("gateway %s, the owner, says nothing of "+
		"epoch %d, and the store was restored from a backup: it is asked to serve the volume in a new epoch",
		o.gatewayName(o.ownership.Owner.Number), o.ownership.Epoch)})
}

func (o *owning) step() Action {
	switch o.ownership.State {
	case model.Unowned, model.Orphaned:
		return o.stepUnowned()
	case model.Acquiring:
		return o.stepAcquiring()
	case model.Opening:
		return o.stepOpening()
	case model.Owned:
		return o.stepOwned()
	case model.Moving:
		return o.stepMoving()
	case model.Fencing:
		return o.stepFencing()
	}
	return nil
}

func (o *owning) stepUnowned() Action {
	switch {
	case o.wantsOwner():
		return o.assignOwner(reasonExported)
	case o.ownership.State == model.Orphaned:
		return o.change(ReasonUnexported, model.Ownership.Retire, nil)
	case o.volume.Status.MoveRequest != nil:
		return o.refuse(*o.volume.Status.MoveRequest, "no target exports the volume: it needs no owner")
	}
	return nil
}

// assignOwner assigns the best possible owner. If there is none, it records that.
func (o *owning) assignOwner(reason string) Action {
	next, ok := o.candidate()
	if !ok {
		o.decision.NoOwner = true
		return nil
	}
	if o.ownership.State == model.Orphaned && !o.mayTakeOver() {
		return nil
	}
	if o.local() {
		return o.change(reason, func(from model.Ownership) (model.Ownership, error) { return from.Acquire(next) }, nil)
	}
	return o.change(reason, func(from model.Ownership) (model.Ownership, error) { return from.Assign(next) }, nil)
}

func (o *owning) stepAcquiring() Action {
	r, known := o.report(o.volume.Meta.UID, o.ownership.Next)
	known = known && r.Order == o.ownership.Order && r.Epoch == o.ownership.Epoch
	switch {
	case known && r.State == model.VolumeLocked:
		return o.change(reasonLocked, func(from model.Ownership) (model.Ownership, error) { return from.Locked(from.Next) }, nil)
	case !o.wantsOwner() && o.ownership.Owner.IsZero():
		return o.change(ReasonUnexported, model.Ownership.Abandon, nil)
	case known && ends(r.State):
		return o.giveUp(reasonFailed, r.Reason)
	case o.Standing(o.ownership.Next) != Present:
		return o.giveUp(reasonCandidate, "")
	}
	if left := AcquireTimeout - o.now.Sub(o.since); left > 0 {
		o.decision.wait(left)
		return nil
	}
	if next, ok := o.candidate(o.ownership.Next, o.ownership.Owner); ok {
		return o.failed(o.ownership.Next, o.change(reasonOwnerSlow,
			func(from model.Ownership) (model.Ownership, error) { return from.Acquire(next) }, nil))
	}
	// No other gateway can own it. The candidate is asked again, with a newer order, because it may have ignored this one.
	return o.giveUp(reasonOwnerSlow, "in time")
}

// giveUp ends the attempt of a candidate, which is tried again later.
func (o *owning) giveUp(reason, why string) Action {
	a := o.change(reason, model.Ownership.Abandon, &Event{true, reason,
		fmt.Sprintf("gateway %s did not get the volume's lock %s", o.gatewayName(o.ownership.Next.Number), why)})
	return o.failed(o.ownership.Next, a)
}

// failed adds to an action that the view records a failure of the gateway.
func (o *owning) failed(by model.GatewayRef, a Action) Action {
	name := o.volume.Meta.Name
	a.About().Done = func(view *LeaderView, now time.Time) { view.fail(name, by.Number, now) }
	return a
}

// ended returns the owner's own report that it no longer serves in this epoch, if there is one.
func (o *owning) ended() (model.VolumeReport, bool) {
	r, known := o.report(o.volume.Meta.UID, o.ownership.Owner)
	return r, known && r.Epoch == o.ownership.Epoch && ends(r.State)
}

// ends reports whether a gateway in this state no longer reaches the volume in that epoch.
func ends(state model.ObservedState) bool {
	return state == model.VolumeReleased || state == model.VolumeFailed || state == model.VolumeFenced
}

func (o *owning) released(reason string, event *Event) *ChangeOwner {
	return o.change(reason, func(from model.Ownership) (model.Ownership, error) { return from.Released(from.Owner, from.Epoch) },
		event)
}

func (o *owning) stepOpening() Action {
	if r, ended := o.ended(); ended {
		return o.failed(o.ownership.Owner, o.released(reasonFailed, &Event{true, reasonFailed,
			fmt.Sprintf("gateway %s could not open the volume: %s", o.gatewayName(o.ownership.Owner.Number), r.Reason)}))
	}
	if r, known := o.report(o.volume.Meta.UID, o.ownership.Owner); known && r.Epoch == o.ownership.Epoch && r.State == model.VolumeServing {
		a := o.change(ReasonServing, func(from model.Ownership) (model.Ownership, error) {
			return from.Serving(from.Owner, from.Epoch)
		}, &Event{false, "Owned", fmt.Sprintf("gateway %s serves the volume in epoch %d", o.gatewayName(o.ownership.Owner.Number), o.ownership.Epoch)})
		name, number := o.volume.Meta.Name, o.ownership.Owner.Number
		a.Done = func(view *LeaderView, _ time.Time) { view.succeed(name, number) }
		return a
	}
	if o.Standing(o.ownership.Owner) == Gone {
		return o.replaceOwner()
	}
	if a := o.renew(); a != nil {
		return a
	}
	if left := OpenTimeout - o.now.Sub(o.since); left > 0 {
		o.decision.wait(left)
		return nil
	}
	next, ok := o.candidate(o.ownership.Owner)
	if !o.local() {
		return o.replaceOpening(ok)
	}
	if ok { // the lock is the fence
		return o.failed(o.ownership.Owner, o.change(reasonOwnerSlow,
			func(from model.Ownership) (model.Ownership, error) { return from.Acquire(next) }, nil))
	}
	o.decision.NoOwner = true
	return nil
}

// replaceOpening replaces an owner that may yet open the volume. Such an owner must be fenced, which also ends its other volumes.
// It is therefore the last resort.
func (o *owning) replaceOpening(others bool) Action {
	o.decision.NoOwner = true
	if left := FenceOpening - o.now.Sub(o.since); left > 0 || !others {
		o.decision.wait(left)
		return nil
	}
	return o.failed(o.ownership.Owner, o.change(reasonOwnerSlow, model.Ownership.BeginFence, &Event{true, reasonOwnerSlow,
		fmt.Sprintf("gateway %s could not open the volume within %s: it is shut out", o.gatewayName(o.ownership.Owner.Number), FenceOpening)}))
}

// replaceOwner replaces an owner that is gone and did not report that it released the volume.
func (o *owning) replaceOwner() Action {
	event := &Event{true, ReasonOwnerDead, fmt.Sprintf("gateway %s, the owner, is gone", o.incarnationName(o.ownership.Owner))}
	if !o.local() {
		return o.change(ReasonOwnerDead, model.Ownership.BeginFence, event)
	}
	if o.ownership.State == model.Moving {
		return o.change(ReasonOwnerDead, model.Ownership.CancelMove, event)
	}
	if !o.mayTakeOver() {
		return nil
	}
	next, ok := o.candidate(o.ownership.Owner)
	switch {
	case ok:
		return o.change(ReasonOwnerDead, func(from model.Ownership) (model.Ownership, error) { return from.Acquire(next) }, event)
	case o.wantsOwner():
		o.decision.NoOwner = true
	case !o.anyCandidate(): // its node may be lost permanently, which must not prevent the volume's deletion
		return o.change(ReasonOwnerDead, model.Ownership.LoseOwner, event)
	}
	return nil
}

func (o *owning) stepOwned() Action {
	if r, ended := o.ended(); ended {
		a := o.released(reasonOwnerFenced, &Event{true, reasonOwnerFenced,
			fmt.Sprintf("gateway %s has released the volume: %s", o.gatewayName(o.ownership.Owner.Number), r.Reason)})
		if r.State == model.VolumeReleased {
			return a // it closed the volume for a move that was cancelled: it is in order
		}
		return o.failed(o.ownership.Owner, a)
	}
	switch o.Standing(o.ownership.Owner) {
	case Gone:
		return o.replaceOwner()
	case Absent:
		return nil // it continues to serve, and would not receive the order to move
	}
	if a := o.renew(); a != nil {
		return a
	}
	if !o.wantsOwner() {
		return o.change(ReasonUnexported, func(from model.Ownership) (model.Ownership, error) {
			return from.Move(model.GatewayRef{})
		}, nil)
	}
	if o.volume.Status.MoveRequest != nil && len(o.volume.Status.Held) == 0 {
		return o.carryOut(o.volume.Status.MoveRequest)
	}
	return o.planned()
}
