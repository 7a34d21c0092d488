package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

// ErrFencingUnsupported says that nobody can shut a gateway out of this pool.
var ErrFencingUnsupported = errors.New("gateways cannot be shut out of pools of this kind: " +
	"the volume stays without an owner until the very process that owned it is back, or it is deleted")

// Fencer shuts one incarnation of a gateway out of a volume where its data is (R2). Nil proves that nothing of it can reach
// the volume any more; after any other answer it may.
type Fencer interface {
	Fence(ctx context.Context, pool *model.StoragePool, volume *model.Volume, gateway model.GatewayRef) error
}

// noFencer can fence nobody. Local pools need none: the lock is the fence.
type noFencer struct{}

func (noFencer) Fence(context.Context, *model.StoragePool, *model.Volume, model.GatewayRef) error {
	return ErrFencingUnsupported
}

// outlaw notes with the gateway which incarnation is being shut out: it is never given a volume again.
func (o *owning) outlaw() {
	g, incarnation := o.GatewayByNumber(o.is.Owner.Number), o.is.Owner.Incarnation
	if g == nil || g.Status.FencedIncarnation == incarnation {
		return
	}
	o.d.add(modify(g, func(object model.Object) bool {
		status := &object.(*model.Gateway).Status
		if status.Incarnation != incarnation || status.FencedIncarnation == incarnation {
			return false // an incarnation that was replaced never comes back anyway
		}
		status.FencedIncarnation = incarnation
		return true
	}, nil))
}

func (o *owning) stepFencing() *Action {
	o.d.Alarm = AlarmNoOwner
	fence := o.is.Fence
	a := o.change(reasonFencedOut, func(is model.Ownership) (model.Ownership, error) { return is.Fenced(fence) },
		&Event{false, reasonFencedOut, fmt.Sprintf("gateway %s is shut out", fence)})
	a.Fence = &fence
	return a
}
