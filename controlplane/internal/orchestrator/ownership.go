package orchestrator

import (
	"fmt"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// Reasons of changes of ownership.
const (
	reasonEpochLost    = "EpochFromGateway"
	reasonExported     = "Exported"
	reasonUnexported   = "Unexported"
	reasonLocked       = "Locked"
	reasonServing      = "Serving"
	reasonReleased     = "Released"
	reasonFailed       = "OpenFailed"
	reasonOwnerFenced  = "OwnerFenced"
	reasonOwnerDead    = model.ReasonOwnerDead
	reasonOwnerSlow    = "OwnerSlow"
	reasonCandidate    = "CandidateGone"
	reasonMoveRequest  = model.ReasonMoveRequested
	reasonMoveTimeout  = "MoveTimeout"
	reasonNextGone     = "NextOwnerGone"
	reasonDrain        = "Drain"
	reasonRebalance    = "Rebalance"
	reasonFencedOut    = "Fenced"
	reasonNoCandidate  = "NoGateway"
	reasonPoolUnknown  = "StoragePoolMissing"
	reasonSourceLarger = "SourceLarger"
	reasonRestored     = "StoreRestored"
)

// owning is what a decision on a volume's ownership goes by.
type owning struct {
	*View
	volume *model.Volume
	is     model.Ownership
	pool   *model.StoragePool
	target *model.Target
	// since is when this leader began to decide on the ownership as it is.
	since time.Time
	now   time.Time
	d     *Decision
}

func (o *owning) local() bool { return o.pool.Spec.Local != nil }

// wanted says that the volume should have an owner.
func (o *owning) wanted() bool {
	return o.target != nil && !o.volume.Meta.Deleting() && o.volume.Status.CapacityBytes > 0 && o.volume.Status.RollBack == nil
}

// change is the one step to be made now.
func (o *owning) change(reason string, f func(model.Ownership) (model.Ownership, error), event *Event) *Action {
	a := about(o.volume)
	a.Own, a.Event = &OwnChange{From: o.is, Change: f, Reason: reason}, event
	return &a
}

// decideOwnership makes at most one step: what follows from it is decided on what is stored then.
func (v *View) decideOwnership(volume *model.Volume, now time.Time, d *Decision) {
	o := &owning{View: v, volume: volume, is: volume.Status.Ownership, now: now, d: d,
		since: v.since(Key{model.KindVolume, volume.Meta.Name}, volume.Status.Ownership.Order, now), pool: v.StoragePools[volume.Spec.Pool], target: v.target(volume.Meta.Name)}
	if o.pool == nil {
		return
	}
	step := o.raise()
	if step == nil && d.Alarm == "" {
		step = o.step()
		if request := volume.Status.MoveRequest; step == nil && d.Alarm != "" && request != nil {
			step = o.refuse(*request, "no gateway can own the volume now. See what is wrong: sluicectl doctor")
		}
	}
	if step != nil {
		if step.Own != nil {
			o.given(step.Own)
			v.tellWith(step, volume, now)
		}
		d.add(*step)
	}
}

// raise takes up an epoch above the stored one, or an order: the store was restored from a backup.
func (o *owning) raise() *Action {
	var newest store.VolumeReport
	order := uint64(0)
	for _, r := range o.reports[o.volume.Meta.UID] {
		if !o.credible(r) {
			continue
		}
		order = max(order, r.Order)
		if newest.Gateway.IsZero() || r.Epoch > newest.Epoch || r.Epoch == newest.Epoch && r.State == store.VolumeServing {
			newest = r
		}
	}
	if newest.Epoch <= o.is.Epoch && order <= o.is.Order {
		return nil
	}
	serving := newest.State == store.VolumeServing
	if newest.Epoch > o.is.Epoch && !serving && !o.local() {
		o.d.Alarm = AlarmNoOwner
		return nil // whoever owns it in that epoch is not known, and could not be fenced (R2: no takeover)
	}
	by, epoch := newest.Gateway, newest.Epoch
	return o.change(reasonEpochLost, func(is model.Ownership) (model.Ownership, error) {
		return is.Raise(by, epoch, order, serving)
	}, &Event{true, reasonEpochLost, fmt.Sprintf("gateway %d told of epoch %d, the store had %d; of order %d, the store "+
		"had %d: was it restored from a backup?", by.Number, epoch, o.is.Epoch, order, o.is.Order)})
}

// credible says that what a gateway tells of lost epochs can be so. Nobody could have the lock of a local pool's data but gateways of
// its node. And no epoch or order was ever given without a change of the store, or lies above the floor of a restore, which are both less
// than the milliseconds since 1970: what is more is made up, and would leave none to be given next.
func (o *owning) credible(r store.VolumeReport) bool {
	if limit := max(o.is.Floor, o.is.Epoch, o.is.Order, uint64(max(o.now.UnixMilli(), 0))); r.Epoch > limit || r.Order > limit {
		return false
	}
	g := o.GatewayByNumber(r.Gateway.Number)
	return !o.local() || g != nil && g.Spec.Node == o.pool.Spec.Local.Node
}

// renew gives the volume to its owner anew where the store was restored and the owner does not say that it serves in this epoch. It may
// have heard of a later one that is lost, and then it takes no order of this one, and says nothing.
func (o *owning) renew() *Action {
	r, told := o.report(o.volume.Meta.UID, o.is.Owner)
	if !o.is.Lost() || told && r.Epoch == o.is.Epoch || o.Standing(o.is.Owner) != Present {
		return nil
	}
	since := o.links[o.is.Owner.Number].since
	if o.since.After(since) {
		since = o.since
	}
	if left := OpenTimeout - o.now.Sub(since); left > 0 {
		o.d.wait(left)
		return nil
	}
	return o.change(reasonRestored, model.Ownership.Renew, &Event{true, reasonRestored, fmt.Sprintf("gateway %d, the owner, says nothing of "+
		"epoch %d, and the store was restored from a backup: it is asked to serve the volume in a new epoch",
		o.is.Owner.Number, o.is.Epoch)})
}

func (o *owning) step() *Action {
	switch o.is.State {
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

func (o *owning) stepUnowned() *Action {
	switch {
	case o.wanted():
		return o.give(reasonExported)
	case o.is.State == model.Orphaned:
		return o.change(reasonUnexported, model.Ownership.Retire, nil)
	case o.volume.Status.MoveRequest != nil:
		return o.refuse(*o.volume.Status.MoveRequest, "no target exports the volume: it needs no owner")
	}
	return nil
}

// give asks for an owner, the best that can be one; without any it is an alarm.
func (o *owning) give(reason string) *Action {
	next, ok := o.candidate()
	if !ok {
		o.d.Alarm = AlarmNoOwner
		return nil
	}
	if o.is.State == model.Orphaned && !o.mayTakeOver() {
		return nil
	}
	if o.local() {
		return o.change(reason, func(is model.Ownership) (model.Ownership, error) { return is.Acquire(next) }, nil)
	}
	return o.change(reason, func(is model.Ownership) (model.Ownership, error) { return is.Assign(next) }, nil)
}

func (o *owning) stepAcquiring() *Action {
	r, told := o.report(o.volume.Meta.UID, o.is.Next)
	told = told && r.Order == o.is.Order && r.Epoch == o.is.Epoch
	switch {
	case told && r.State == store.VolumeLocked:
		return o.change(reasonLocked, func(is model.Ownership) (model.Ownership, error) { return is.Locked(is.Next) }, nil)
	case !o.wanted() && o.is.Owner.IsZero():
		return o.change(reasonUnexported, model.Ownership.Abandon, nil)
	case told && ends(r.State):
		return o.giveUp(reasonFailed, r.Reason)
	case o.Standing(o.is.Next) != Present:
		return o.giveUp(reasonCandidate, "")
	}
	if left := AcquireTimeout - o.now.Sub(o.since); left > 0 {
		o.d.wait(left)
		return nil
	}
	if next, ok := o.candidate(o.is.Next, o.is.Owner); ok {
		return o.failed(o.is.Next, o.change(reasonOwnerSlow,
			func(is model.Ownership) (model.Ownership, error) { return is.Acquire(next) }, nil))
	}
	// Nobody else can: it is asked again, by a newer order, for it may not have taken this one for news.
	return o.giveUp(reasonOwnerSlow, "in time")
}

// giveUp ends the attempt of a candidate, whose turn comes again later.
func (o *owning) giveUp(reason, why string) *Action {
	a := o.change(reason, model.Ownership.Abandon, &Event{true, reason,
		fmt.Sprintf("gateway %d did not get the volume's lock %s", o.is.Next.Number, why)})
	return o.failed(o.is.Next, a)
}

// failed notes with an action that a gateway failed.
func (o *owning) failed(by model.GatewayRef, a *Action) *Action {
	name := o.volume.Meta.Name
	a.Done = func(view *View, now time.Time) { view.fail(name, by.Number, now) }
	return a
}

// ended is the owner's own word that it serves in this epoch no more, if there is one.
func (o *owning) ended() (store.VolumeReport, bool) {
	r, told := o.report(o.volume.Meta.UID, o.is.Owner)
	return r, told && r.Epoch == o.is.Epoch && ends(r.State)
}

// ends says that whoever reports it reaches the volume no more in that epoch.
func ends(state store.ObservedState) bool {
	return state == store.VolumeReleased || state == store.VolumeFailed || state == store.VolumeFenced
}

func (o *owning) released(reason string, event *Event) *Action {
	return o.change(reason, func(is model.Ownership) (model.Ownership, error) { return is.Released(is.Owner, is.Epoch) },
		event)
}

func (o *owning) stepOpening() *Action {
	if r, ended := o.ended(); ended {
		return o.failed(o.is.Owner, o.released(reasonFailed, &Event{true, reasonFailed,
			fmt.Sprintf("gateway %d could not open the volume: %s", o.is.Owner.Number, r.Reason)}))
	}
	if r, told := o.report(o.volume.Meta.UID, o.is.Owner); told && r.Epoch == o.is.Epoch && r.State == store.VolumeServing {
		a := o.change(reasonServing, func(is model.Ownership) (model.Ownership, error) {
			return is.Serving(is.Owner, is.Epoch)
		}, &Event{false, "Owned", fmt.Sprintf("gateway %d serves the volume in epoch %d", o.is.Owner.Number, o.is.Epoch)})
		name, number := o.volume.Meta.Name, o.is.Owner.Number
		a.Done = func(view *View, _ time.Time) { view.succeed(name, number) }
		return a
	}
	if o.Standing(o.is.Owner) == Gone {
		return o.replaceOwner()
	}
	if a := o.renew(); a != nil {
		return a
	}
	if left := OpenTimeout - o.now.Sub(o.since); left > 0 {
		o.d.wait(left)
		return nil
	}
	next, ok := o.candidate(o.is.Owner)
	if !o.local() {
		return o.replaceOpening(ok)
	}
	if ok { // the lock is the fence
		return o.failed(o.is.Owner, o.change(reasonOwnerSlow,
			func(is model.Ownership) (model.Ownership, error) { return is.Acquire(next) }, nil))
	}
	o.d.Alarm = AlarmNoOwner
	return nil
}

// replaceOpening: it may open yet, and whoever may open must not be passed over without a fence; which ends its other
// volumes, too, and is therefore the last resort.
func (o *owning) replaceOpening(others bool) *Action {
	o.d.Alarm = AlarmNoOwner
	if left := FenceOpening - o.now.Sub(o.since); left > 0 || !others {
		o.d.wait(left)
		return nil
	}
	return o.failed(o.is.Owner, o.change(reasonOwnerSlow, model.Ownership.BeginFence, &Event{true, reasonOwnerSlow,
		fmt.Sprintf("gateway %d could not open the volume within %s: it is shut out", o.is.Owner.Number, FenceOpening)}))
}

// replaceOwner is for an owner that is gone, and did not say that it released the volume.
func (o *owning) replaceOwner() *Action {
	event := &Event{true, reasonOwnerDead, fmt.Sprintf("gateway %s, the owner, is gone", o.is.Owner)}
	if !o.local() {
		return o.change(reasonOwnerDead, model.Ownership.BeginFence, event)
	}
	if o.is.State == model.Moving {
		return o.change(reasonOwnerDead, model.Ownership.CancelMove, event)
	}
	if !o.mayTakeOver() {
		return nil
	}
	next, ok := o.candidate(o.is.Owner)
	switch {
	case ok:
		return o.change(reasonOwnerDead, func(is model.Ownership) (model.Ownership, error) { return is.Acquire(next) }, event)
	case o.wanted():
		o.d.Alarm = AlarmNoOwner
	case !o.anyCandidate(): // its node is lost, maybe for good: it must not be kept from going for that
		return o.change(reasonOwnerDead, model.Ownership.LoseOwner, event)
	}
	return nil
}

func (o *owning) stepOwned() *Action {
	if r, ended := o.ended(); ended {
		a := o.released(reasonOwnerFenced, &Event{true, reasonOwnerFenced,
			fmt.Sprintf("gateway %d has given the volume up: %s", o.is.Owner.Number, r.Reason)})
		if r.State == store.VolumeReleased {
			return a // it closed it for a move that was called off: nothing is wrong with it
		}
		return o.failed(o.is.Owner, a)
	}
	switch o.Standing(o.is.Owner) {
	case Gone:
		return o.replaceOwner()
	case Absent:
		return nil // it serves on, and would not hear of a move
	}
	if a := o.renew(); a != nil {
		return a
	}
	if !o.wanted() {
		return o.change(reasonUnexported, func(is model.Ownership) (model.Ownership, error) {
			return is.Move(model.GatewayRef{})
		}, nil)
	}
	if o.volume.Status.MoveRequest != nil && len(o.volume.Status.Held) == 0 {
		return o.carryOut(o.volume.Status.MoveRequest)
	}
	return o.planned()
}
