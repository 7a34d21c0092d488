package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// DecideVolume decides the next actions for a volume: first its ownership, then its image, then its conditions.
func (v *LeaderView) DecideVolume(name string, now time.Time) Decision {
	var decision Decision
	volume := v.Volumes[name]
	if volume == nil {
		return decision
	}
	v.decideOwnership(volume, now, &decision)
	if len(decision.Actions) > 0 || decision.held {
		return decision
	}
	var image progress
	switch {
	case len(volume.Status.Held) > 0:
		image = heldProgress(volume.Status.Held)
	case volume.Meta.Deleting():
		image = v.decideDeletion(volume, now, &decision)
	default:
		image = v.decideImage(volume, now, &decision)
	}
	if decision.removes() {
		return decision
	}
	if a, needed := v.allocated(volume); needed {
		decision.add(a)
	}
	shown := volume
	if image.refused != nil { // this decision ends the request
		ended := *volume
		ended.Status.RollBack, ended.Status.Refusal = nil, image.refused
		shown, image = &ended, progress{}
	}
	if c, needed := conditions(volume, v.volumeConditions(shown, image, now, &decision), now); needed {
		decision.add(c)
	}
	return decision
}

// allocated stores the allocated bytes that the owner reports, if they changed by more than 1/64 of the size.
func (v *LeaderView) allocated(volume *model.Volume) (Action, bool) {
	r, known := v.report(volume.Meta.UID, volume.Status.Ownership.Owner)
	have, now := volume.Status.AllocatedBytes, r.AllocatedBytes
	differs := max(have-now, now-have)
	if !known || now < 0 || differs == 0 || have >= 0 && differs < volume.Spec.SizeBytes/64 {
		return nil, false
	}
	return modify(volume, func(o model.Object) bool {
		o.(*model.Volume).Status.AllocatedBytes = now
		return true
	}, nil), true
}
