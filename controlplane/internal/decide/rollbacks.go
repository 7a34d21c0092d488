package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// rollBack restores a volume to a snapshot. The volume gets no owner before the rollback ends.
func (v *LeaderView) rollBack(volume *model.Volume, pool *model.StoragePool, now time.Time, decision *Decision) progress {
	snapshot := v.SnapshotByUID(volume.Status.RollBack.Snapshot)
	if snapshot == nil {
		return rollBackFailed(volume, nil, "the snapshot is not there any more", now, decision)
	}
	if volume.Status.Ownership.State != model.Unowned {
		return progress{reason: "Releasing", message: "its owner has yet to release it"}
	}
	p := v.runJob(decision, volume, pool, model.Job{ID: jobID(volume.Meta.UID, "rollback"), Action: model.JobRollBackImage,
		Location: model.VolumeLocation(volume), SnapshotLocation: model.SnapshotLocation(snapshot)}, anyone, now)
	switch {
	case p.done != nil:
		// The job is dropped first: a remaining job would count for the next request. A second rollback is harmless.
		decision.add(drop(volume, p.done), endRollBack(volume, nil, Event{false, "RolledBack",
			"it is what it was at snapshot " + snapshot.Meta.Name}, now))
	case p.reason == reasonJobUnsupported:
		return rollBackFailed(volume, v.Jobs[jobID(volume.Meta.UID, "rollback")], p.message, now, decision)
	}
	return p
}

// endRollBack ends the request unless a newer request replaced it. The refusal is stored in the same transaction, because a
// waiting client would mistake an end without a refusal for success.
func endRollBack(volume *model.Volume, refused *model.Refusal, event Event, now time.Time) Action {
	request := *volume.Status.RollBack
	return modify(volume, func(o model.Object) bool {
		v := o.(*model.Volume)
		if v.Status.RollBack == nil || *v.Status.RollBack != request {
			return false
		}
		v.Status.RollBack, v.Status.Refusal = nil, refused
		if refused != nil {
			c := condition(model.ConditionProgressing, false, refused.Reason, refused.Message)
			c.ObservedGeneration = v.Meta.Generation
			model.SetCondition(&v.Status.Conditions, c, now)
		}
		return true
	}, &event)
}

// rollBackFailed ends a request that cannot succeed, and drops the job that failed.
func rollBackFailed(volume *model.Volume, job *model.Job, why string, now time.Time, decision *Decision) progress {
	refused := &model.Refusal{Reason: reasonRollBackFailed, Message: why}
	if job != nil {
		decision.add(drop(volume, job))
	}
	decision.add(endRollBack(volume, refused, Event{true, reasonRollBackFailed, why}, now))
	return progress{reason: reasonRollBackFailed, message: why, refused: refused}
}
