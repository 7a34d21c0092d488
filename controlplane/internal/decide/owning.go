package decide

import (
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Owning returns the ownership that results from the action. It refuses a volume whose ownership has changed since the decision.
func (a *ChangeOwner) Owning(volume *model.Volume) (model.Ownership, error) {
	if volume.Meta.UID != a.UID || volume.Status.Ownership != a.From {
		return volume.Status.Ownership, ErrStale
	}
	next, err := a.Change(volume.Status.Ownership)
	if err != nil {
		return next, err
	}
	next.Reason = a.Reason
	for _, c := range a.conditions {
		model.SetCondition(&volume.Status.Conditions, c, a.at)
	}
	a.follow(&volume.Status, next, a.Event)
	return next, nil
}

// setConditions stores the conditions that follow from a change of ownership with that change. Stored separately they would double
// the writes, and delay those that hosts wait for. Conditions about the volume's image, and those that cause an event, are left to
// a separate decision. Ready is always stored with the change, because it determines what hosts are answered (Volume.Stranded).
func (v *LeaderView) setConditions(change *ChangeOwner, volume *model.Volume, now time.Time) {
	if volume.Status.CapacityBytes == 0 {
		return
	}
	next, err := change.Change(change.From)
	if err != nil {
		return
	}
	owned := *volume
	owned.Status.Ownership = next
	change.follow(&owned.Status, next, change.Event)
	concernsImage := len(volume.Status.Held) > 0 || volume.Meta.Deleting() || volume.Status.CapacityBytes < volume.Spec.SizeBytes
	var image progress
	if !concernsImage {
		image = v.decideImage(&owned, now, &Decision{})
	}
	wanted := v.volumeConditions(&owned, image, now, &Decision{})
	if concernsImage || appliedEvent(volume.Status.Conditions, wanted) != nil {
		wanted = slices.DeleteFunc(wanted, func(c model.Condition) bool { return c.Type != model.ConditionReady })
	}
	for i := range wanted {
		wanted[i].ObservedGeneration = volume.Meta.Generation
	}
	change.conditions, change.at = wanted, now
}
