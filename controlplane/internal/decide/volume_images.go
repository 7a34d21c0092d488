package decide

import (
	"fmt"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// decideImage creates a volume's image and grows it. The capacity that hosts see follows the image.
func (v *LeaderView) decideImage(volume *model.Volume, now time.Time, decision *Decision) progress {
	have, want := volume.Status.CapacityBytes, volume.Spec.SizeBytes
	pool := v.StoragePools[volume.Spec.Pool]
	switch {
	case pool == nil:
		return progress{reason: reasonPoolUnknown, message: "storage pool " + volume.Spec.Pool + " is not there"}
	case volume.Status.RollBack != nil:
		return v.rollBack(volume, pool, now, decision)
	case have >= want && volume.Status.SharesWith != "":
		return v.flatten(volume, pool, now, decision)
	case have >= want:
		return v.finish(volume, decision)
	}
	job := model.Job{ID: jobID(volume.Meta.UID, "resize"), Action: model.JobResizeImage,
		Location: model.VolumeLocation(volume), SizeBytes: want, SourceBytes: have}
	if have == 0 {
		job.ID, job.Action = jobID(volume.Meta.UID, "create"), model.JobCreateImage
		made := v.Jobs[job.ID] != nil && v.Jobs[job.ID].Succeeded() // the source is no longer needed
		if problem := v.fromSource(volume, pool, &job); problem.reason == reasonSourceLarger || problem.reason != "" && !made {
			return problem
		}
	}
	p := v.runJob(decision, volume, pool, job, v.manager(volume), now)
	if p.done == nil {
		return p
	}
	size, sharesWith := p.done.SizeBytes, ""
	if p.done.Action == model.JobAdoptImage {
		if size = p.done.Result.SizeBytes; size > want {
			return progress{reason: reasonSourceLarger, message: fmt.Sprintf("the image has %d bytes, more than spec.sizeBytes, and is not "+
				"cut off: ask for as many", size)}
		}
	} else if source := v.Volumes[volume.Spec.Source.Volume]; have == 0 && pool.Spec.RBD != nil && source != nil {
		sharesWith = source.Meta.UID
	}
	if size <= have { // the result was stored earlier; a larger size was requested since then
		decision.add(drop(volume, p.done))
		return p
	}
	decision.add(modify(volume, func(o model.Object) bool {
		status := &o.(*model.Volume).Status
		if status.CapacityBytes >= size {
			return false
		}
		status.CapacityBytes = size
		if sharesWith != "" {
			status.SharesWith = sharesWith
		}
		return true
	}, &Event{false, choose(have == 0, "Created", "Grown"), fmt.Sprintf("its image has %d bytes", size)}),
		drop(volume, p.done))
	return p
}

// finish drops jobs whose result is stored already.
func (v *LeaderView) finish(volume *model.Volume, decision *Decision) progress {
	for _, what := range []string{"create", "resize", "rollback", "flatten"} {
		if job := v.Jobs[jobID(volume.Meta.UID, what)]; job != nil && job.Ended() {
			decision.add(drop(volume, job))
		}
	}
	return progress{}
}

// manager selects the gateway that manages a volume's image. Only the owner manages an image in Ceph that it serves: another
// gateway would wait for the lock of an owner that hangs.
func (v *LeaderView) manager(volume *model.Volume) gatewayChoice {
	pool, ownership := v.StoragePools[volume.Spec.Pool], volume.Status.Ownership
	return gatewayChoice{preferred: ownership.Owner.Number, only: pool != nil && pool.Spec.RBD != nil && ownership.State == model.Owned}
}

// flatten makes a copy in Ceph independent of its source, so that the source can be deleted.
func (v *LeaderView) flatten(volume *model.Volume, pool *model.StoragePool, now time.Time, decision *Decision) progress {
	p := v.runJob(decision, volume, pool, model.Job{ID: jobID(volume.Meta.UID, "flatten"), Action: model.JobFlattenImage,
		VolumeUID: volume.Meta.UID, Location: model.VolumeLocation(volume)}, v.manager(volume), now)
	if p.done != nil {
		decision.add(modify(volume, func(o model.Object) bool {
			status := &o.(*model.Volume).Status
			had := status.SharesWith != ""
			status.SharesWith = ""
			return had
		}, &Event{false, "Flattened", "it shares nothing any more with the volume that it was made from"}),
			drop(volume, p.done))
	}
	return p
}
