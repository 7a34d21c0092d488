package decide

import (
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

// notAdopted reports whether a volume was to adopt an image but was never usable. A gateway may already have renamed the image,
// because it learns only then that the size is too large.
func notAdopted(volume *model.Volume) bool {
	return volume.Status.CapacityBytes == 0 && volume.Spec.Source.Image != ""
}

// retained returns the reclaim policy for data that is older than its volume. Delete, which is the default, does not apply to
// such data.
func retained(policy model.ReclaimPolicy) model.ReclaimPolicy {
	if policy == model.ReclaimDelete {
		return model.ReclaimRetain
	}
	return policy
}

// keptImage returns an event that states where the image is that a volume failed to adopt. It accompanies the job that was to
// adopt it: without such a job no gateway has touched the image.
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
