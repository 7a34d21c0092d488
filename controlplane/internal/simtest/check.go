package simtest

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

func (w *Simulation) violate(format string, args ...any) {
	w.found = append(w.found, fmt.Sprintf(format, args...))
}

// Violations returns the invariants that were violated.
func (w *Simulation) Violations() []string { return w.found }

func (w *Simulation) servedBy(uid string) *process {
	for _, name := range w.names {
		for _, p := range w.past[name] {
			if u := p.units[uid]; u != nil && u.serving != 0 && p.alive && !w.ceph.blocklisted[u.open] {
				return p
			}
		}
	}
	return nil
}

// checkServing: one gateway serves in an epoch, at any time.
func (w *Simulation) checkServing(p *process, uid string, epoch uint64) {
	key := epochKey{uid, epoch}
	if by, known := w.served[key]; known && by != p.ref && !w.resumes(p, uid, by) {
		w.violate("%s serves %s in epoch %d, in which %s has", p.ref, uid, epoch, by)
	}
	w.served[key] = p.ref
	w.checkImage(p, uid)
	if o := p.units[uid].received; !o.MayServe(p.ref, epoch) {
		w.violate("%s serves %s against its order", p.ref, uid)
	}
}

// checkOwn: epochs never decrease, each has one owner, none begins without the lock or the release, and no request is lost.
func (w *Simulation) checkOwn(a *decide.ChangeOwner, before, after *model.Volume, next model.Ownership) {
	uid, was := before.Meta.UID, before.Status.Ownership
	if next.Epoch < was.Epoch {
		w.violate("the epoch of %s falls from %d to %d", uid, was.Epoch, next.Epoch)
	}
	if !next.Owner.IsZero() {
		key := epochKey{uid, next.Epoch}
		if by, known := w.owners[key]; known && by != next.Owner && !w.wasResumed(key, by, next.Owner) {
			w.violate("%s and %s own %s in epoch %d", by, next.Owner, uid, next.Epoch)
		}
		w.owners[key] = next.Owner
	}
	if inCeph(before) {
		w.checkOwnInCeph(before, was, next)
		w.checkRequest(a.Object, before, after)
		return
	}
	holder := w.disk(uid).holder // the holder may have an order that a restored store has lost
	locked := was.State == model.Acquiring &&
		(w.locked[lockKey{uid, next.Owner, was.Order}] || holder != nil && holder.ref == next.Owner)
	if next.Epoch > was.Epoch && next.State == model.Opening && was.State != model.Moving && !locked {
		w.violate("%s owns %s in epoch %d and did not have the lock", next.Owner, uid, next.Epoch)
	}
	released := was.State == model.Moving && next.State != model.Moving && next.State != model.Owned ||
		next.State == model.Orphaned && !was.Owner.IsZero() && was.State != model.Acquiring
	p := w.process(was.Owner)
	serves := p != nil && p.alive && p.units[uid] != nil && p.units[uid].serving == was.Epoch
	switch {
	case released && a.Reason == model.ReasonOwnerDead: // no gateway can take the lock; a gateway that still serves has it
		if w.lost[uid] = true; serves && holder != p {
			w.violate("%s was taken from %s, which serves it in epoch %d without the lock", uid, was.Owner, was.Epoch)
		}
	case released && serves:
		w.violate("%s was taken for released by %s, which serves it in epoch %d", uid, was.Owner, was.Epoch)
	}
	w.checkRequest(a.Object, before, after)
}

func (w *Simulation) process(ref model.GatewayRef) *process {
	if ref.IsZero() {
		return nil
	}
	past := w.past[w.names[ref.Number-1]]
	if at := slices.IndexFunc(past, func(p *process) bool { return p.ref == ref }); at >= 0 {
		return past[at]
	}
	return nil
}

// checkRequest: a request to move ends only by a decision on that request.
func (w *Simulation) checkRequest(decided model.Object, before, after *model.Volume) {
	request := before.Status.MoveRequest
	if request == nil || after.Status.MoveRequest != nil {
		return
	}
	seen := decided.(*model.Volume).Status.MoveRequest
	if seen == nil || *seen != *request {
		w.violate("a request to move %s was lost", before.Meta.Name)
	}
}

// checkModify: a gateway is declared dead only if it was in trouble when that was decided, and requests are not lost.
func (w *Simulation) checkModify(decided, before, after model.Object, logRead int) {
	switch o := after.(type) {
	case *model.Volume:
		w.checkRequest(decided, before.(*model.Volume), o)
		if o.Spec != before.(*model.Volume).Spec || o.Status.Ownership != before.(*model.Volume).Status.Ownership {
			w.violate("a change of the status of %s changed its spec or owner", o.Meta.Name)
		}
	case *model.Gateway:
		if o.Status.Health != model.GatewayDead || before.(*model.Gateway).Status.Health == model.GatewayDead {
			return
		}
		if !w.foundGone(o.Ref(), logRead) {
			w.violate("%s was given up, though no peer had said that it is gone", o.Ref())
		}
	}
}

// foundGone reports whether, in the log up to logRead, some peer's last report on an incarnation was that it does not reach it.
func (w *Simulation) foundGone(ref model.GatewayRef, logRead int) bool {
	last := map[uint32]model.Reach{}
	for _, c := range w.store.log[:logRead] {
		if r := c.record.Peer; r != nil && r.Peer == ref {
			last[r.Reporter.Number] = r.Reach
		}
	}
	for _, reach := range last {
		if reach != model.PeerConnected {
			return true
		}
	}
	return false
}
