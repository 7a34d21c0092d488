package decide

import (
	"cmp"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// DecideSnapshot takes a snapshot through the volume's owner, and removes it once it was deleted.
func (v *LeaderView) DecideSnapshot(name string, now time.Time) Decision {
	var decision Decision
	snapshot := v.Snapshots[name]
	if snapshot == nil {
		return decision
	}
	volume := v.Volumes[snapshot.Spec.Volume]
	var pool *model.StoragePool
	if volume != nil {
		pool = v.StoragePools[volume.Spec.Pool]
	}
	var p progress
	switch {
	case len(snapshot.Status.Held) > 0:
		p = heldProgress(snapshot.Status.Held)
	case snapshot.Meta.Deleting():
		if p = v.deleteSnapshot(snapshot, volume, pool, now, &decision); p.done != nil {
			return decision
		}
	case snapshot.Status.Ready:
	case pool == nil || volume.Status.CapacityBytes == 0:
		p = progress{reason: "SourceNotReady", message: "its volume is not ready"}
	default:
		p = v.takeSnapshot(snapshot, volume, pool, now, &decision)
	}
	ready := snapshot.Status.Ready
	c, needed := conditions(snapshot, []model.Condition{
		condition(model.ConditionReady, ready, choose(ready, "Taken", cmp.Or(p.reason, "NotTaken")), p.message),
		condition(model.ConditionProgressing, p.reason == reasonJobRuns, cmp.Or(p.reason, "Settled"), p.message),
	}, now)
	if needed && !decision.removes() {
		decision.add(c)
	}
	return decision
}

func (v *LeaderView) takeSnapshot(snapshot *model.Snapshot, volume *model.Volume, pool *model.StoragePool, now time.Time,
	decision *Decision,
) progress {
	ownership := volume.Status.Ownership
	if ownership.State != model.Owned && ownership.State != model.Unowned {
		return progress{reason: "WaitsForOwner", message: "it is taken by the volume's owner, between commands"}
	}
	job := model.Job{ID: jobID(snapshot.Meta.UID, "snapshot"), Action: model.JobCreateSnapshotImage,
		VolumeUID: volume.Meta.UID, Location: model.VolumeLocation(volume),
		SnapshotLocation: model.SnapshotLocation(snapshot), SizeBytes: volume.Status.CapacityBytes}
	// If there is an owner only the owner may take the snapshot, because it is consistent only between the owner's commands.
	p := v.runJob(decision, snapshot, pool, job, gatewayChoice{preferred: ownership.Owner.Number, only: ownership.State == model.Owned}, now)
	if p.done != nil {
		// While a volume grows, its image may already be larger than the capacity. A volume made from the snapshot must be large
		// enough for it.
		done, size := *p.done, max(p.done.SizeBytes, volume.Status.CapacityBytes, volume.Spec.SizeBytes)
		decision.add(modify(snapshot, func(o model.Object) bool {
			status := &o.(*model.Snapshot).Status
			taken := done.Result.At
			status.Ready, status.SizeBytes, status.TakenTime = true, size, &taken
			return true
		}, &Event{false, "Taken", "the snapshot can be used"}), drop(snapshot, p.done))
	}
	return p
}

// deleteSnapshot deletes the snapshot's data. The progress is done when the snapshot is to be removed, which the decision then
// does.
func (v *LeaderView) deleteSnapshot(snapshot *model.Snapshot, volume *model.Volume, pool *model.StoragePool, now time.Time,
	decision *Decision,
) progress {
	remove := &Remove{about(snapshot)}
	if pool == nil || snapshot.Spec.ReclaimPolicy == model.ReclaimRetain {
		for _, what := range []string{"snapshot", "delete"} {
			if job := v.Jobs[jobID(snapshot.Meta.UID, what)]; job != nil {
				decision.add(drop(snapshot, job))
			}
		}
		decision.add(remove)
		return progress{done: &model.Job{}}
	}
	deletion := model.Job{ID: jobID(snapshot.Meta.UID, "delete"), Action: model.JobDeleteSnapshotImage,
		PoolUID: pool.Meta.UID, VolumeUID: volume.Meta.UID, Location: model.VolumeLocation(volume),
		SnapshotLocation: model.SnapshotLocation(snapshot)}
	if !v.cancelJobs(decision, snapshot, deletion, jobID(snapshot.Meta.UID, "snapshot")) {
		return progress{reason: reasonJobRuns, message: "what was begun is called off"}
	}
	if r := volume.Status.RollBack; r != nil && r.Snapshot == snapshot.Meta.UID {
		return progress{reason: reasonJobRuns, message: "its volume is being rolled back to it"}
	}
	if !snapshot.Status.Ready && v.Jobs[deletion.ID] == nil {
		decision.add(remove)
		return progress{done: &model.Job{}}
	}
	p := v.runJob(decision, snapshot, pool, deletion, v.manager(volume), now)
	if p.done != nil {
		decision.add(drop(snapshot, p.done), remove)
	}
	return p
}
