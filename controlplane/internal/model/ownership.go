package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxFencedClients bounds Ownership.FencedClients: of many, the last ones may have the lock.
const maxFencedClients = 64

// OwnershipState is where a volume stands between owners.
type OwnershipState string

// The states. What each lets happen next is what the methods of Ownership do; nothing else changes one.
const (
	// Unowned: nobody owns the volume and nobody should, for no target exports it.
	Unowned OwnershipState = "Unowned"
	// Acquiring: a gateway of a local pool's node takes the lock; only then does the epoch move (R2, local).
	Acquiring OwnershipState = "Acquiring"
	// Opening: the owner is decided, in this epoch, and opens the volume.
	Opening OwnershipState = "Opening"
	// Owned: the owner executes commands.
	Owned OwnershipState = "Owned"
	// Moving: the owner drains and releases the volume, for Next or for nobody (R7).
	Moving OwnershipState = "Moving"
	// Fencing: the owner of an earlier epoch is being shut out; nobody may open yet (R2, rbd).
	Fencing OwnershipState = "Fencing"
	// Orphaned: it should be owned and no gateway can: an alarm.
	Orphaned OwnershipState = "Orphaned"
)

// GatewayRef is one incarnation of a gateway: a restarted process is another client, to be fenced by itself.
type GatewayRef struct {
	Number      uint32 `json:"number"`
	Incarnation string `json:"incarnation"`
}

// IsZero says that it refers to nobody.
func (r GatewayRef) IsZero() bool { return r == GatewayRef{} }

func (r GatewayRef) String() string { return fmt.Sprintf("%d/%s", r.Number, r.Incarnation) }

// Ownership says who executes a volume's commands. Each change is stored by compare-and-swap on the volume's version
// (R1); the methods are the only changes there are and return the new value, or an IllegalTransition.
type Ownership struct {
	State OwnershipState `json:"state"`
	// Epoch is +1 at every change of owner and never falls.
	Epoch uint64 `json:"epoch"`
	// Owner of this epoch; zero where there is none.
	Owner GatewayRef `json:"owner,omitzero"`
	// Next is who shall own it after Acquiring or Moving; zero for nobody.
	Next GatewayRef `json:"next,omitzero"`
	// Fence is who has to be shut out before anyone opens (Fencing).
	Fence GatewayRef `json:"fence,omitzero"`
	// FencedClients are the clients of Ceph, apart by spaces, that were blocklisted since the volume was served last. One
	// of them may still have the image's lock; whoever opens the image next passes it over.
	FencedClients string `json:"fencedClients,omitempty"`
	// Order is +1 at every change that was stored, also one that reads the same: gateways compare it to tell which of two
	// orders is the newer. Set by the store alone.
	Order uint64 `json:"order,omitempty"`
	// Floor is of a store that was restored from a backup: at least the last epoch, and the last order, that the one that was lost
	// can have given. What is given next lies above it. 0: no epoch up to the present one was lost.
	Floor uint64 `json:"floor,omitempty"`
	// Reason of the last change, one CamelCase word, and when it was.
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// IllegalTransition is a change that the state does not allow: the caller's view is old, so look again.
type IllegalTransition struct {
	State  OwnershipState
	Change string
}

func (e *IllegalTransition) Error() string {
	return fmt.Sprintf("a volume that is %s cannot be changed by %q", e.State, e.Change)
}

func (o Ownership) illegal(change string) (Ownership, error) {
	return o, &IllegalTransition{o.State, change}
}

// within is another state in the same epoch, with nobody in it yet.
func (o Ownership) within(state OwnershipState) Ownership {
	return Ownership{State: state, Epoch: o.Epoch, Floor: o.Floor}
}

// epochFor begins a new epoch with an owner that has yet to open.
func (o Ownership) epochFor(owner GatewayRef) Ownership {
	return Ownership{State: Opening, Epoch: max(o.Epoch, o.Floor) + 1, Owner: owner, FencedClients: o.FencedClients}
}

// orphan is a volume that should have an owner and has none.
func (o Ownership) orphan() Ownership {
	next := o.within(Orphaned)
	next.FencedClients = o.FencedClients
	return next
}

// Assign gives a volume that nobody can be serving to a gateway.
func (o Ownership) Assign(owner GatewayRef) (Ownership, error) {
	if owner.IsZero() || (o.State != Unowned && o.State != Orphaned) {
		return o.illegal("assign")
	}
	return o.epochFor(owner), nil
}

// Acquire asks a gateway of a local pool's node for the lock. The epoch stays and so does the owner that may yet live: the lock is
// the fence. Asking another candidate replaces the first: at most one can hold the lock. Only in a restored store the epoch moves
// as well: a candidate that has heard of a lost one takes no order of an earlier.
func (o Ownership) Acquire(next GatewayRef) (Ownership, error) {
	if next.IsZero() || next == o.Owner || o.State == Moving || o.State == Fencing {
		return o.illegal("acquire")
	}
	acquiring := o.within(Acquiring)
	acquiring.Owner, acquiring.Next = o.Owner, next
	if o.Lost() {
		acquiring.Epoch, acquiring.Floor = o.Floor+1, 0
	}
	return acquiring, nil
}

// Locked is the candidate's report that it holds the lock: its epoch begins.
func (o Ownership) Locked(by GatewayRef) (Ownership, error) {
	if o.State != Acquiring || by != o.Next {
		return o.illegal("locked")
	}
	return o.epochFor(by), nil
}

// Serving is the owner's report that it executes commands in its epoch.
func (o Ownership) Serving(by GatewayRef, epoch uint64) (Ownership, error) {
	if o.State != Opening || by != o.Owner || epoch != o.Epoch {
		return o.illegal("serving")
	}
	o.State, o.FencedClients = Owned, ""
	return o, nil
}

// Move asks the owner to release the volume, for next, or for nobody (zero) where no target exports it any more.
func (o Ownership) Move(next GatewayRef) (Ownership, error) {
	if o.State != Owned || next == o.Owner {
		return o.illegal("move")
	}
	moving := o.within(Moving)
	moving.Owner, moving.Next = o.Owner, next
	return moving, nil
}

// CancelMove leaves the volume with its owner. Legal while the owner has not reported the release, for until
// then it owns the volume in this epoch. An owner that has closed it meanwhile does not open it again in this
// epoch but says Released, which then orphans it: see VOLUME_STATE_RELEASED in gateway_stream.proto.
func (o Ownership) CancelMove() (Ownership, error) {
	if o.State != Moving {
		return o.illegal("cancel move")
	}
	return o.kept(), nil
}

// kept by the owner, as if nobody had asked it for anything.
func (o Ownership) kept() Ownership {
	owned := o.within(Owned)
	owned.Owner = o.Owner
	return owned
}

// Released is the owner's own report that nothing of it can reach the volume any more: drained and closed, never opened, or
// fenced. The word of the very incarnation that owned it is as good as a fence.
func (o Ownership) Released(by GatewayRef, epoch uint64) (Ownership, error) {
	if by != o.Owner || epoch != o.Epoch {
		return o.illegal("released")
	}
	switch o.State {
	case Moving:
		if !o.Next.IsZero() {
			return o.epochFor(o.Next), nil
		}
		return o.within(Unowned), nil
	case Opening, Owned:
		return o.orphan(), nil
	}
	return o.illegal("released")
}

// BeginFence shuts a dead owner out. The epoch moves first, so that whoever hears of it refuses the old owner
// (R1), then the owner is fenced where its data is (R2), and only Fenced lets anyone open.
func (o Ownership) BeginFence() (Ownership, error) {
	if o.Owner.IsZero() || (o.State != Opening && o.State != Owned && o.State != Moving) {
		return o.illegal("begin fence")
	}
	fencing := o.within(Fencing)
	fencing.Epoch, fencing.Fence, fencing.FencedClients = o.Epoch+1, o.Owner, o.FencedClients
	return fencing, nil
}

// Fenced is the proof that the old owner is shut out, by its own word (no clients) or because these clients of it, which are
// all it has, are blocklisted. Any gateway may own the volume from now on: next does, zero leaves it without an owner.
func (o Ownership) Fenced(fenced GatewayRef, clients []string, next GatewayRef) (Ownership, error) {
	if o.State != Fencing || fenced != o.Fence {
		return o.illegal("fenced")
	}
	all := strings.Fields(o.FencedClients)
	for _, client := range clients {
		if !slices.Contains(all, client) {
			all = append(all, client)
		}
	}
	o.FencedClients = strings.Join(all[max(0, len(all)-maxFencedClients):], " ")
	if next.IsZero() {
		return o.orphan(), nil
	}
	return o.epochFor(next), nil
}

// Abandon gives up a candidate that died before it reported the lock; whoever held the lock before still may.
func (o Ownership) Abandon() (Ownership, error) {
	if o.State != Acquiring {
		return o.illegal("abandon")
	}
	if o.Owner.IsZero() {
		return o.within(Orphaned), nil
	}
	return o.kept(), nil
}

// LoseOwner is for a volume of a local pool whose owner is gone, while no target exports it and no gateway of its node is there to take
// the lock. Whoever may serve it still has the lock, which is the fence: the next owner takes it first, as does whoever deletes the
// data or rolls it back.
func (o Ownership) LoseOwner() (Ownership, error) {
	if o.Owner.IsZero() || (o.State != Opening && o.State != Owned) {
		return o.illegal("lose owner")
	}
	return o.within(Orphaned), nil
}

// Retire ends an orphan that no target exports any more.
func (o Ownership) Retire() (Ownership, error) {
	if o.State != Orphaned {
		return o.illegal("retire")
	}
	retired := o.within(Unowned)
	retired.FencedClients = o.FencedClients
	return retired, nil
}

// Raise takes up an epoch or an order that a gateway tells of and the store has lost, being restored from a backup.
// Whoever serves in a lost epoch is its owner, for an epoch has one; otherwise nobody is known to own the volume.
// Only for a local pool may the latter be raised: there the lock is the fence, whoever else was the owner.
// Orders go on above the lost ones, or gateways would take new orders for old.
func (o Ownership) Raise(by GatewayRef, epoch, order uint64, serving bool) (Ownership, error) {
	if by.IsZero() || epoch <= o.Epoch && order <= o.Order {
		return o.illegal("raise")
	}
	raised := o
	if epoch > o.Epoch && serving {
		raised = Ownership{State: Owned, Epoch: epoch, Owner: by, Floor: o.Floor}
	} else if epoch > o.Epoch {
		raised = Ownership{State: Orphaned, Epoch: epoch, Floor: o.Floor}
	}
	raised.Order = max(o.Order, order)
	return raised, nil
}

// Restored notes that the store was restored from a backup, and lost epochs and orders up to a floor at most. Who owns the volume
// stays: whoever it is, it may be serving.
func (o Ownership) Restored(floor uint64) Ownership {
	o.Floor = max(o.Floor, floor)
	return o
}

// Lost says that epochs above the present one may have been given, which nothing but gateways knows of.
func (o Ownership) Lost() bool { return o.Floor > o.Epoch }

// Renew gives the volume to its owner anew, above all lost epochs: it may have heard of one, and take no order of an earlier. To
// the owner alone that is harmless in whatever epoch it serves: it lets go, and opens again.
func (o Ownership) Renew() (Ownership, error) {
	if !o.Lost() || o.Owner.IsZero() || (o.State != Opening && o.State != Owned && o.State != Moving) {
		return o.illegal("renew")
	}
	return o.epochFor(o.Owner), nil
}

// Ordered is what follows upon o, with its order and time, as it is stored.
func (o Ownership) Ordered(next Ownership, at time.Time) Ownership {
	next.Order, next.Since = max(next.Order, o.Order, o.Floor)+1, at
	return next
}

// MayServe says whether a gateway may execute commands of the volume now, as far as the store knows.
func (o Ownership) MayServe(gateway GatewayRef, epoch uint64) bool {
	if gateway.IsZero() || gateway != o.Owner || epoch != o.Epoch {
		return false
	}
	return o.State == Opening || o.State == Owned || o.State == Moving || o.State == Acquiring
}
