package dispatch

import (
	"context"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

// mayCommit refuses a commit of reservations in an epoch that is another gateway's. The epoch, which the store compares, keeps a former
// owner from it (R8); a gateway that was never the owner may know the epoch as well: every gateway of the path set is told it.
// An epoch has one owner, so that what the view says of the epoch in question does not age.
//
// Where nobody is known to own the volume, somebody may still serve it, behind its lock (Ownership.LoseOwner, Raise). Nobody can tell who,
// so nobody's word is taken; but it is not called fenced for that: its hosts hear BUSY (R3) until the lock is handed over, and an owner
// with it.
func (g *gatewayStream) mayCommit(ctx context.Context, uid string, epoch uint64) error {
	owned, known := g.ownership(uid)
	if !known || owned.Epoch < epoch { // of an epoch that the view has not heard of yet, another replica's gateways may have
		if err := g.service.catchUp(ctx, 0); err != nil {
			return err
		}
		owned, known = g.ownership(uid)
	}
	switch {
	case known && owned.Epoch < epoch: // whoever owns it in a later epoch was told so after that was stored, and the view knew it by now
		return fmt.Errorf("%w: the store has epoch %d", model.ErrFenced, owned.Epoch)
	case !known, owned.Epoch > epoch:
		return nil // the store says what of it is true
	case owned.Owner == g.connection.Ref:
		return nil
	case owned.Owner.IsZero() && (owned.State == model.Orphaned || owned.State == model.Acquiring):
		return model.Precondition("epoch", "nobody is known to own the volume in epoch %d: it gets an owner first", epoch)
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
