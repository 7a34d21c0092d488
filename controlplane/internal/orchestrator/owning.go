package orchestrator

import (
	"context"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Owning is the change of a volume that store.Own makes: only of the ownership that it was decided on.
func (a Action) Owning(volume *model.Volume) (model.Ownership, error) {
	if volume.Meta.UID != a.UID || volume.Status.Ownership != a.Own.From {
		return volume.Status.Ownership, ErrStale
	}
	next, err := a.Own.Change(volume.Status.Ownership)
	if err != nil {
		return next, err
	}
	next.Reason = a.Own.Reason
	for _, c := range a.Own.conditions {
		model.SetCondition(&volume.Status.Conditions, c, a.Own.at)
	}
	a.Own.follow(&volume.Status, next, a.Event)
	return next, nil
}

// own stores a change of ownership of the volume that it was decided on.
func (t *term) own(ctx context.Context, a Action) (*model.Volume, error) {
	seen, ok := a.Object.(*model.Volume)
	if !ok {
		return nil, ErrStale // without the volume as it was seen nothing would hold the records that it was decided by
	}
	return t.Store.OwnSeen(ctx, seen, a.Own.Records, a.Owning)
}

// tellWith has the conditions that follow from a change of ownership stored with it: apart from it they would be as many writes
// again, in the way of those that hosts wait for. What is to be told of the volume's image takes a look of its own, and so does
// what calls for an event.
func (v *View) tellWith(step *Action, volume *model.Volume, now time.Time) {
	if len(volume.Status.Held) > 0 || volume.Meta.Deleting() || volume.Status.CapacityBytes < max(volume.Spec.SizeBytes, 1) {
		return
	}
	change := step.Own
	next, err := change.Change(change.From)
	if err != nil {
		return
	}
	owned := *volume
	owned.Status.Ownership = next
	change.follow(&owned.Status, next, step.Event)
	wanted := v.volumeConditions(&owned, v.decideImage(&owned, now, &Decision{}), now, &Decision{})
	if appliedEvent(volume.Status.Conditions, wanted) != nil {
		return
	}
	for i := range wanted {
		wanted[i].ObservedGeneration = volume.Meta.Generation
	}
	change.conditions, change.at = wanted, now
}
