package dispatch

import (
	"context"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

// mayCommit refuses a commit of reservations in an epoch of which another gateway is the owner. The store compares the epoch,
// which stops a former owner (R8). But a gateway that was never the owner may know the epoch as well, because every gateway of
// the path set receives it. An epoch has one owner, so the view's data about an epoch does not become outdated.
//
// If the volume has no known owner, a gateway may still serve it, behind its lock (Ownership.LoseOwner, Raise). No component can
// determine which, so no commit is accepted. The gateway is not answered as fenced: its hosts get BUSY (R3) until the lock, and
// with it the ownership, is handed over.
func (g *gatewayStream) mayCommit(ctx context.Context, uid string, epoch uint64) error {
	owned, known := g.ownership(uid)
	if !known || owned.Epoch < epoch { // gateways of another replica may know an epoch that the view does not know yet
		if err := g.service.catchUp(ctx, 0); err != nil {
			return err
		}
		owned, known = g.ownership(uid)
	}
	switch {
	case known && owned.Epoch < epoch: // the owner of a later epoch learned of it after it was stored, and the view has it by now
		return fmt.Errorf("%w: the store has epoch %d", model.ErrFenced, owned.Epoch)
	case !known, owned.Epoch > epoch:
		return nil // the store decides the rest
	case owned.Owner == g.connection.Ref:
		return nil
	case owned.Owner.IsZero() && (owned.State == model.Orphaned || owned.State == model.Acquiring):
		return model.Precondition("epoch", "the volume has no known owner in epoch %d: it gets an owner first", epoch)
	}
	return fmt.Errorf("%w: in epoch %d gateway %s does not own it", model.ErrFenced, epoch, g.name)
}

func (g *gatewayStream) ownership(uid string) (owned model.Ownership, known bool) {
	g.service.options.View.Read(func(o *objects.Objects) {
		if volume := o.VolumeByUID(uid); volume != nil {
			owned, known = volume.Status.Ownership, true
		}
	})
	return owned, known
}
