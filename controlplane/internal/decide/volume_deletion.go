package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// decideDeletion removes a deleted volume after its owner released it: first its image by the reclaim policy, then the object.
func (v *LeaderView) decideDeletion(volume *model.Volume, now time.Time, decision *Decision) progress {
	if volume.Status.Ownership.State != model.Unowned {
		return progress{reason: "Releasing", message: "its owner has yet to release it"}
	}
	if name := v.copiedBy(volume); name != "" {
		return progress{reason: "Copying", message: "volume " + name + " is being made from it"}
	}
	pool := v.StoragePools[volume.Spec.Pool]
	remove := &Remove{about(volume)}
	policy := volume.Spec.ReclaimPolicy
	switch {
	case notAdopted(volume):
		policy = retained(policy)
	case volume.Status.CapacityBytes == 0:
		policy = model.ReclaimDelete // no host has written to it
	}
	if pool != nil && policy != model.ReclaimDelete && volume.Status.SharesWith != "" {
		// The retained image must be independent: otherwise its source could never be deleted.
		return v.flatten(volume, pool, now, decision)
	}
	if pool == nil || policy == model.ReclaimRetain {
		for _, what := range []string{"create", "resize", "rollback", "flatten", "delete"} {
			if job := v.Jobs[jobID(volume.Meta.UID, what)]; job != nil {
				dropped := drop(volume, job)
				dropped.Event = keptImage(volume, job)
				decision.add(dropped)
			}
		}
		decision.add(remove)
		return progress{}
	}
	deletion := model.Job{ID: jobID(volume.Meta.UID, "delete"), Action: model.JobDeleteImage,
		PoolUID: pool.Meta.UID, Location: model.VolumeLocation(volume), VolumeUID: volume.Meta.UID}
	if policy == model.ReclaimTrash {
		deletion.TrashSeconds = int64(model.TrashKeeps / time.Second)
	}
	uid := volume.Meta.UID
	if !v.cancelJobs(decision, volume, deletion, jobID(uid, "create"), jobID(uid, "resize"), jobID(uid, "rollback"),
		jobID(uid, "flatten")) {
		return progress{reason: reasonJobRuns, message: "what was begun is called off"}
	}
	if volume.Status.CapacityBytes == 0 && v.Jobs[deletion.ID] == nil {
		decision.add(remove)
		return progress{}
	}
	p := v.runJob(decision, volume, pool, deletion, anyone, now)
	if p.done != nil {
		decision.add(drop(volume, p.done), remove)
	}
	return p
}
