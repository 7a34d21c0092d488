package decide

import (
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

// fromSource completes a job with the source of the volume's image. The progress has the reason if the source cannot be used.
func (v *LeaderView) fromSource(volume *model.Volume, pool *model.StoragePool, job *model.Job) progress {
	if image := volume.Spec.Source.Image; image != "" {
		// The API refuses such a volume; an earlier release accepted it.
		if owner := model.ImageOwner(image); owner != "" && (v.VolumeByUID(owner) != nil || v.SnapshotByUID(owner) != nil) {
			return progress{reason: "ImageInUse", message: "the image in spec.source.image belongs to an existing Volume or Snapshot, " +
				"and is never adopted: delete this Volume"}
		}
		job.Action, job.Image = model.JobAdoptImage, image
		return progress{}
	}
	source, problem := v.source(volume)
	if source == "" {
		return problem
	}
	job.Action, job.SourceLocation, job.SourceBytes = model.JobCloneImage, source, 0
	if of := v.Volumes[volume.Spec.Source.Volume]; of != nil {
		job.SourceBytes = of.Status.CapacityBytes
	}
	if snapshot := v.Snapshots[volume.Spec.Source.Snapshot]; snapshot != nil && pool.Spec.RBD != nil {
		of := v.Volumes[snapshot.Spec.Volume]
		if of == nil {
			return progress{reason: "SourceMissing", message: "the volume that the snapshot is of is not there any more"}
		}
		job.SnapshotOf = model.VolumeLocation(of)
	}
	return progress{}
}

// source returns the location of a volume's source; empty: the volume has no source.
func (v *LeaderView) source(volume *model.Volume) (string, progress) {
	from := volume.Spec.Source
	missing := progress{reason: "SourceMissing", message: "what it is to be made from is not there any more"}
	switch {
	case from.Snapshot != "":
		snapshot := v.Snapshots[from.Snapshot]
		if snapshot == nil {
			return "", missing
		}
		if !snapshot.Status.Ready {
			return "", progress{reason: "SourceNotReady", message: "snapshot " + from.Snapshot + " is not ready"}
		}
		return holds(volume, "snapshot "+from.Snapshot, snapshot.Status.SizeBytes, model.SnapshotLocation(snapshot))
	case from.Volume != "":
		source := v.Volumes[from.Volume]
		if source == nil || v.Jobs[jobID(source.Meta.UID, "delete")] != nil {
			return "", missing
		}
		if source.Status.CapacityBytes == 0 {
			return "", progress{reason: "SourceNotReady", message: "volume " + from.Volume + " is not ready"}
		}
		// A growing source has a larger image before its capacity is raised. The copy must be large enough for that image.
		return holds(volume, "volume "+from.Volume, max(source.Status.CapacityBytes, source.Spec.SizeBytes), model.VolumeLocation(source))
	}
	return "", progress{}
}

// holds returns the location of a source if the volume is at least as large as the source. A gateway refuses a smaller copy. The size of
// a snapshot is unknown until the snapshot is ready, and a source volume can grow, so this check is repeated.
func holds(volume *model.Volume, source string, size int64, location string) (string, progress) {
	if size <= volume.Spec.SizeBytes {
		return location, progress{}
	}
	return "", progress{reason: reasonSourceLarger, message: fmt.Sprintf("%s has %d bytes, more than spec.sizeBytes, and a copy cuts "+
		"nothing off: sluicectl volume resize %s --size %d", source, size, volume.Meta.Name, size)}
}

// copiedBy names a volume that is being copied from this volume or still shares its image, so this volume must stay; empty: none.
// A copy cannot start once the source's image is being deleted. A copy that the pool does not support never starts.
func (v *LeaderView) copiedBy(volume *model.Volume) string {
	if v.Jobs[jobID(volume.Meta.UID, "delete")] != nil {
		return ""
	}
	for _, name := range names(v.Volumes) {
		other := v.Volumes[name]
		copying := v.Jobs[jobID(other.Meta.UID, "create")]
		if other.Status.SharesWith == volume.Meta.UID {
			return name
		}
		if other.Spec.Source.Volume == volume.Meta.Name && other.Status.CapacityBytes == 0 && !other.Meta.Deleting() &&
			copying != nil && !copying.Result.Unsupported {
			return name
		}
	}
	return ""
}
