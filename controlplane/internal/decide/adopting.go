package decide

import (
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

// notAdopted says that a volume was to adopt an image and never could be used. A gateway may have renamed the image already: it
// learns of the size that is too large only then.
func notAdopted(volume *model.Volume) bool {
	return volume.Status.CapacityBytes == 0 && volume.Spec.Source.Image != ""
}

// retained is a reclaim policy for data that is older than its volume: Delete, which nobody has to ask for, is not for it.
func retained(policy model.ReclaimPolicy) model.ReclaimPolicy {
	if policy == model.ReclaimDelete {
		return model.ReclaimRetain
	}
	return policy
}

// keptImage tells where the image of a volume is that did not come to adopt it. It goes with the job that was to adopt it: without
// one no gateway was asked to.
func keptImage(volume *model.Volume, job *model.Job) *Event {
	if !notAdopted(volume) || job.Action != model.JobAdoptImage {
		return nil
	}
	where := fmt.Sprintf("image %s is kept, under its name or as %s", volume.Spec.Source.Image, model.VolumeLocation(volume))
	adopts, size := "IMAGE", volume.Spec.SizeBytes
	if job.Succeeded() {
		adopts, size = model.VolumeLocation(volume), job.Result.SizeBytes
		where = fmt.Sprintf("image %s is kept, as %s", volume.Spec.Source.Image, adopts)
	}
	return &Event{false, "ImageKept", fmt.Sprintf("%s: sluicectl volume create NAME --pool %s --from-image %s --size %d adopts it",
		where, volume.Spec.Pool, adopts, size)}
}
