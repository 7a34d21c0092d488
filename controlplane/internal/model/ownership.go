package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxFencedClients bounds Ownership.FencedClients. If there are more, the newest are kept: a recent client is the likeliest
// holder of the image's lock.
const maxFencedClients = 64

// OwnershipState is the state of a volume's ownership.
type OwnershipState string

// The states. Only the methods of Ownership change one; they define which changes each state allows.
const (
	// Unowned: no gateway owns the volume, and none should, because no target exports it.
	Unowned OwnershipState = "Unowned"
	// Acquiring: a gateway of a local pool's node takes the lock. The epoch increases only after that (R2, local).
	Acquiring OwnershipState = "Acquiring"
	// Opening: the owner is decided, in this epoch, and opens the volume.
	Opening OwnershipState = "Opening"
	// Owned: the owner executes commands.
	Owned OwnershipState = "Owned"
	// Moving: the owner drains and releases the volume, for Next, or for no gateway if Next is zero (R7).
	Moving OwnershipState = "Moving"
	// Fencing: the owner of an earlier epoch is being fenced. No gateway may open the volume yet (R2, rbd).
	Fencing OwnershipState = "Fencing"
	// Orphaned: the volume should have an owner, but no gateway can own it. This raises an alarm.
	Orphaned OwnershipState = "Orphaned"
)

// GatewayRef is one incarnation of a gateway. A restarted process is another incarnation, which is fenced separately.
type GatewayRef struct {
	Number      uint32 `json:"number"`
	Incarnation string `json:"incarnation"`
}

// IsZero reports whether the reference names no gateway.
func (r GatewayRef) IsZero() bool { return r == GatewayRef{} }

func (r GatewayRef) String() string { return fmt.Sprintf("%d/%s", r.Number, r.Incarnation) }

// Ownership states which gateway executes a volume's commands. Each change is stored by compare-and-swap on the volume's version
// (R1). Only the methods below change it; each returns the new value, or an IllegalTransition.
type Ownership struct {
	State OwnershipState `json:"state"`
	// Epoch increases by one at each change of owner and never decreases.
	Epoch uint64 `json:"epoch"`
	// Owner of this epoch; zero: none.
	Owner GatewayRef `json:"owner,omitzero"`
	// Next is the gateway that becomes the owner after Acquiring or Moving; zero: none.
	Next GatewayRef `json:"next,omitzero"`
	// Fence is the gateway that must be fenced before another one opens the volume (Fencing).
	Fence GatewayRef `json:"fence,omitzero"`
	// FencedClients are the Ceph clients, separated by spaces, that were blocklisted since the volume was last served. One of
	// them may still hold the image's lock. The next gateway that opens the image skips such a lock.
	FencedClients string `json:"fencedClients,omitempty"`
	// Order increases by one with each stored change, even if the new value equals the old one. Gateways compare orders to find
	// the newer one. Only the store sets it.
	Order uint64 `json:"order,omitempty"`
	// Floor is set in a store that was restored from a backup. It is at least the last epoch and the last order that the lost
	// store can have assigned. New epochs and orders lie above it. 0: no epoch up to the present one was lost.
	Floor uint64 `json:"floor,omitempty"`
	// Reason of the last change, one CamelCase word, and the time of that change.
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// IllegalTransition is a change that the present state does not allow. The caller's view is out of date and must be read again.
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

// within returns another state in the same epoch, without owner, next owner or fence.
func (o Ownership) within(state OwnershipState) Ownership {
	return Ownership{State: state, Epoch: o.Epoch, Floor: o.Floor}
}

// epochFor begins a new epoch, whose owner has yet to open the volume.
func (o Ownership) epochFor(owner GatewayRef) Ownership {
	return Ownership{State: Opening, Epoch: max(o.Epoch, o.Floor) + 1, Owner: owner, FencedClients: o.FencedClients}
}

// orphan returns the state of a volume that should have an owner and has none.
func (o Ownership) orphan() Ownership {
	next := o.within(Orphaned)
	next.FencedClients = o.FencedClients
	return next
}

// Assign makes a gateway the owner of a volume that no gateway can be serving.
func (o Ownership) Assign(owner GatewayRef) (Ownership, error) {
	if owner.IsZero() || (o.State != Unowned && o.State != Orphaned) {
		return o.illegal("assign")
	}
	return o.epochFor(owner), nil
}

// Acquire asks a gateway of a local pool's node to take the lock. Epoch and owner stay, because the old owner may still live: the
// lock is the fence. A second candidate may replace the first, because at most one can hold the lock. Only in a restored store
// does the epoch increase too: a candidate that received a lost epoch refuses orders of an earlier one.
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

// Locked records the candidate's report that it holds the lock. Its epoch begins.
func (o Ownership) Locked(by GatewayRef) (Ownership, error) {
	if o.State != Acquiring || by != o.Next {
		return o.illegal("locked")
	}
	return o.epochFor(by), nil
}

// Serving records the owner's report that it executes commands in its epoch.
func (o Ownership) Serving(by GatewayRef, epoch uint64) (Ownership, error) {
	if o.State != Opening || by != o.Owner || epoch != o.Epoch {
		return o.illegal("serving")
	}
	o.State, o.FencedClients = Owned, ""
	return o, nil
}

// Move asks the owner to release the volume for next. A zero next means no gateway, because no target exports the volume any
// more.
func (o Ownership) Move(next GatewayRef) (Ownership, error) {
	if o.State != Owned || next == o.Owner {
		return o.illegal("move")
	}
	moving := o.within(Moving)
	moving.Owner, moving.Next = o.Owner, next
	return moving, nil
}

// CancelMove leaves the volume with its owner. It is legal until the owner has reported the release, because until then the owner
// owns the volume in this epoch. An owner that has already closed the volume does not open it again in this epoch. It reports
// Released, which orphans the volume; see VOLUME_STATE_RELEASED in gateway_stream.proto.
func (o Ownership) CancelMove() (Ownership, error) {
	if o.State != Moving {
		return o.illegal("cancel move")
	}
	return o.settled(), nil
}

// settled returns the state in which the owner owns the volume and no change is in progress.
func (o Ownership) settled() Ownership {
	owned := o.within(Owned)
	owned.Owner = o.Owner
	return owned
}

// Released records the owner's report that it can no longer access the volume: it drained and closed it, never opened it, or is
// fenced. This report of the incarnation that owned the volume is equivalent to a fence.
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

// BeginFence starts to fence a dead owner. The epoch increases first, so that each gateway that receives it refuses the old owner
// (R1). Then the owner is fenced at its storage (R2). Only Fenced allows another gateway to open the volume.
func (o Ownership) BeginFence() (Ownership, error) {
	if o.Owner.IsZero() || (o.State != Opening && o.State != Owned && o.State != Moving) {
		return o.illegal("begin fence")
	}
	fencing := o.within(Fencing)
	fencing.Epoch, fencing.Fence, fencing.FencedClients = o.Epoch+1, o.Owner, o.FencedClients
	return fencing, nil
}

// Fenced records that the old owner is fenced: it reported so itself (no clients), or these Ceph clients, which are all that it
// has, are blocklisted. Any gateway may own the volume from now on. next becomes the owner; if it is zero the volume has none.
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

// Abandon drops a candidate that died before it reported the lock. The previous owner may still hold the lock.
func (o Ownership) Abandon() (Ownership, error) {
	if o.State != Acquiring {
		return o.illegal("abandon")
	}
	if o.Owner.IsZero() {
		return o.within(Orphaned), nil
	}
	return o.settled(), nil
}

// LoseOwner orphans a volume of a local pool whose owner is gone, while no target exports the volume and no gateway of its node
// can take the lock. A gateway that still serves the volume holds the lock, which is the fence. The next owner takes that lock
// first, and so does a job that deletes the data or rolls it back.
func (o Ownership) LoseOwner() (Ownership, error) {
	if o.Owner.IsZero() || (o.State != Opening && o.State != Owned) {
		return o.illegal("lose owner")
	}
	return o.within(Orphaned), nil
}

// Retire ends the orphaned state of a volume that no target exports any more.
func (o Ownership) Retire() (Ownership, error) {
	if o.State != Orphaned {
		return o.illegal("retire")
	}
	retired := o.within(Unowned)
	retired.FencedClients = o.FencedClients
	return retired, nil
}

// Raise adopts an epoch or an order that a gateway reports and the store, restored from a backup, has lost. A gateway that serves
// in a lost epoch is its owner, because an epoch has one owner. If the gateway does not serve, the volume's owner is unknown;
// that is legal only in a local pool, where the lock fences any other owner. Orders continue above the lost ones; else gateways
// would ignore new orders as old.
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

// Restored records that the store was restored from a backup and has lost epochs and orders up to floor at most. The owner stays,
// because it may be serving.
func (o Ownership) Restored(floor uint64) Ownership {
	o.Floor = max(o.Floor, floor)
	return o
}

// Lost reports whether epochs above the present one may have been assigned that only gateways know.
func (o Ownership) Lost() bool { return o.Floor > o.Epoch }

// Renew assigns the volume to its owner again, in an epoch above all lost ones. The owner may have received a lost epoch, and
// then refuses orders of an earlier one. This is safe for the owner in any epoch: it closes the volume and opens it again.
func (o Ownership) Renew() (Ownership, error) {
	if !o.Lost() || o.Owner.IsZero() || (o.State != Opening && o.State != Owned && o.State != Moving) {
		return o.illegal("renew")
	}
	return o.epochFor(o.Owner), nil
}

// Ordered returns the successor next of o with its order and time, as it is stored.
func (o Ownership) Ordered(next Ownership, at time.Time) Ownership {
	next.Order, next.Since = max(next.Order, o.Order, o.Floor)+1, at
	return next
}

// MayServe reports whether a gateway may execute commands of the volume now, as far as the store knows.
func (o Ownership) MayServe(gateway GatewayRef, epoch uint64) bool {
	if gateway.IsZero() || gateway != o.Owner || epoch != o.Epoch {
		return false
	}
	return o.State == Opening || o.State == Owned || o.State == Moving || o.State == Acquiring
}
