package orchestrator

import (
	"cmp"
	"fmt"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// DecideVolume says what to do for a volume: who owns it comes first, then its image, then what is told of it.
func (v *View) DecideVolume(name string, now time.Time) Decision {
	var d Decision
	volume := v.Volumes[name]
	if volume == nil {
		return d
	}
	v.decideOwnership(volume, now, &d)
	if len(d.Actions) > 0 || d.held {
		return d
	}
	var image progress
	switch {
	case len(volume.Status.Held) > 0:
		image = held(volume.Status.Held)
	case volume.Meta.Deleting():
		image = v.decideDeletion(volume, now, &d)
	default:
		image = v.decideImage(volume, now, &d)
	}
	if len(d.Actions) > 0 && d.Actions[len(d.Actions)-1].Remove != nil {
		return d
	}
	if a, needed := v.allocated(volume); needed {
		d.add(a)
	}
	told := volume
	if image.refused != nil { // the request ends with this very decision
		ended := *volume
		ended.Status.RollBack, ended.Status.Refusal = nil, image.refused
		told, image = &ended, progress{}
	}
	if c, needed := conditions(volume, v.volumeConditions(told, image, now, &d), now); needed {
		d.add(c)
	}
	return d
}

// decideImage makes a volume's image, and lets it grow: first the image, then the capacity that hosts see.
func (v *View) decideImage(volume *model.Volume, now time.Time, d *Decision) progress {
	have, want := volume.Status.CapacityBytes, volume.Spec.SizeBytes
	pool := v.StoragePools[volume.Spec.Pool]
	switch {
	case pool == nil:
		return progress{reason: reasonPoolUnknown, message: "storage pool " + volume.Spec.Pool + " is not there"}
	case volume.Status.RollBack != nil:
		return v.rollBack(volume, pool, now, d)
	case have >= want && volume.Status.SharesWith != "":
		return v.flatten(volume, pool, now, d)
	case have >= want:
		return v.finish(volume, d)
	}
	job := store.Job{ID: jobID(volume.Meta.UID, "resize"), Action: store.JobResizeImage,
		Location: store.VolumeLocation(volume), SizeBytes: want}
	if have == 0 {
		job.ID, job.Action = jobID(volume.Meta.UID, "create"), store.JobCreateImage
		made := v.Jobs[job.ID] != nil && v.Jobs[job.ID].Succeeded() // then its source may go, or wait for it to be flattened
		if problem := v.fromSource(volume, pool, &job); problem.reason == reasonSourceLarger || problem.reason != "" && !made {
			return problem
		}
	}
	p := v.pursue(d, volume, pool, job, v.manager(volume), now)
	if p.done == nil {
		return p
	}
	size, sharesWith := p.done.SizeBytes, ""
	if p.done.Action == store.JobAdoptImage {
		if size = p.done.Result.SizeBytes; size > want {
			return progress{reason: reasonSourceLarger, message: fmt.Sprintf("the image has %d bytes, more than spec.sizeBytes, and is not "+
				"cut off: ask for as many", size)}
		}
	} else if source := v.Volumes[volume.Spec.Source.Volume]; have == 0 && pool.Spec.RBD != nil && source != nil {
		sharesWith = source.Meta.UID
	}
	if size <= have { // it was taken up before, when it could not be dropped; since then somebody wants more
		d.add(drop(volume, p.done))
		return p
	}
	d.add(modify(volume, func(o model.Object) bool {
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

// finish forgets jobs that were done before their result could be dropped.
func (v *View) finish(volume *model.Volume, d *Decision) progress {
	for _, what := range []string{"create", "resize", "rollback", "flatten"} {
		if job := v.Jobs[jobID(volume.Meta.UID, what)]; job != nil && job.Ended() {
			d.add(drop(volume, job))
		}
	}
	return progress{}
}

// manager is who manages a volume's image. One in Ceph that is served is its owner's alone: from elsewhere a hung owner would
// be waited for.
func (v *View) manager(volume *model.Volume) whom {
	pool, is := v.StoragePools[volume.Spec.Pool], volume.Status.Ownership
	return whom{preferred: is.Owner.Number, only: pool != nil && pool.Spec.RBD != nil && is.State == model.Owned}
}

// fromSource has a job make the image from what the volume is to be made from. The progress says why it can't be.
func (v *View) fromSource(volume *model.Volume, pool *model.StoragePool, job *store.Job) progress {
	if image := volume.Spec.Source.Image; image != "" {
		// The API refuses such a volume; an earlier release accepted it.
		if owner := model.ImageOwner(image); owner != "" && (v.VolumeByUID(owner) != nil || v.SnapshotByUID(owner) != nil) {
			return progress{reason: "ImageInUse", message: "the image in spec.source.image belongs to an existing Volume or Snapshot, " +
				"and is never adopted: delete this Volume"}
		}
		job.Action, job.Image = store.JobAdoptImage, image
		return progress{}
	}
	source, problem := v.source(volume)
	if source == "" {
		return problem
	}
	job.Action, job.SourceLocation = store.JobCloneImage, source
	if snapshot := v.Snapshots[volume.Spec.Source.Snapshot]; snapshot != nil && pool.Spec.RBD != nil {
		of := v.Volumes[snapshot.Spec.Volume]
		if of == nil {
			return progress{reason: "SourceMissing", message: "the volume that the snapshot is of is not there any more"}
		}
		job.SnapshotOf = store.VolumeLocation(of)
	}
	return progress{}
}

// source is the location of what a volume is made from, empty where it is made from nothing.
func (v *View) source(volume *model.Volume) (string, progress) {
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
		return holds(volume, "snapshot "+from.Snapshot, snapshot.Status.SizeBytes, store.SnapshotLocation(snapshot))
	case from.Volume != "":
		source := v.Volumes[from.Volume]
		if source == nil || v.Jobs[jobID(source.Meta.UID, "delete")] != nil {
			return "", missing
		}
		if source.Status.CapacityBytes == 0 {
			return "", progress{reason: "SourceNotReady", message: "volume " + from.Volume + " is not ready"}
		}
		// It may be growing: its image is larger before its capacity is, and whenever it is copied, the copy has to hold it.
		return holds(volume, "volume "+from.Volume, max(source.Status.CapacityBytes, source.Spec.SizeBytes), store.VolumeLocation(source))
	}
	return "", progress{}
}

// holds is the location of a source, if the volume is as large: the image of one that is not could never be opened. That is not known
// before the snapshot is ready, and may change while the source can grow.
func holds(volume *model.Volume, source string, size int64, location string) (string, progress) {
	if size <= volume.Spec.SizeBytes {
		return location, progress{}
	}
	return "", progress{reason: reasonSourceLarger, message: fmt.Sprintf("%s has %d bytes, more than spec.sizeBytes, and a copy cuts "+
		"nothing off: sluicectl volume resize %s --size %d", source, size, volume.Meta.Name, size)}
}

// decideDeletion takes a volume away that was deleted: once nobody owns it, its image by the reclaim policy, then
// itself.
func (v *View) decideDeletion(volume *model.Volume, now time.Time, d *Decision) progress {
	if volume.Status.Ownership.State != model.Unowned {
		return progress{reason: "Releasing", message: "its owner has yet to release it"}
	}
	if name := v.copiedBy(volume); name != "" {
		return progress{reason: "Copying", message: "volume " + name + " is being made from it"}
	}
	pool := v.StoragePools[volume.Spec.Pool]
	remove := about(volume)
	remove.Remove = volume
	policy := volume.Spec.ReclaimPolicy
	switch {
	case notAdopted(volume):
		policy = retained(policy)
	case volume.Status.CapacityBytes == 0:
		policy = model.ReclaimDelete // nobody has written to it
	}
	if pool != nil && policy != model.ReclaimDelete && volume.Status.SharesWith != "" {
		// What stays has to stand alone, or what it was made from could never be deleted.
		return v.flatten(volume, pool, now, d)
	}
	if pool == nil || policy == model.ReclaimRetain {
		for _, what := range []string{"create", "resize", "rollback", "flatten", "delete"} {
			if job := v.Jobs[jobID(volume.Meta.UID, what)]; job != nil {
				dropped := drop(volume, job)
				dropped.Event = keptImage(volume, job)
				d.add(dropped)
			}
		}
		d.add(remove)
		return progress{}
	}
	deletion := store.Job{ID: jobID(volume.Meta.UID, "delete"), Action: store.JobDeleteImage,
		PoolUID: pool.Meta.UID, Location: store.VolumeLocation(volume), VolumeUID: volume.Meta.UID}
	if policy == model.ReclaimTrash {
		deletion.TrashSeconds = int64(model.TrashKeeps / time.Second)
	}
	uid := volume.Meta.UID
	if !v.callOff(d, volume, deletion, jobID(uid, "create"), jobID(uid, "resize"), jobID(uid, "rollback"),
		jobID(uid, "flatten")) {
		return progress{reason: reasonJobRuns, message: "what was begun is called off"}
	}
	if volume.Status.CapacityBytes == 0 && v.Jobs[deletion.ID] == nil {
		d.add(remove)
		return progress{}
	}
	p := v.pursue(d, volume, pool, deletion, anyone, now)
	if p.done != nil {
		d.add(drop(volume, p.done), remove)
	}
	return p
}

// rollBack makes a volume what it was at a snapshot. Nobody has it meanwhile: it is not given to anyone before.
func (v *View) rollBack(volume *model.Volume, pool *model.StoragePool, now time.Time, d *Decision) progress {
	snapshot := v.SnapshotByUID(volume.Status.RollBack.Snapshot)
	if snapshot == nil {
		return rollBackFailed(volume, nil, "the snapshot is not there any more", now, d)
	}
	if volume.Status.Ownership.State != model.Unowned {
		return progress{reason: "Releasing", message: "its owner has yet to release it"}
	}
	p := v.pursue(d, volume, pool, store.Job{ID: jobID(volume.Meta.UID, "rollback"), Action: store.JobRollBackImage,
		Location: store.VolumeLocation(volume), SnapshotLocation: store.SnapshotLocation(snapshot)}, anyone, now)
	switch {
	case p.done != nil:
		// The job goes first: left over, it would be taken for the next request's. To roll back twice is harmless.
		d.add(drop(volume, p.done), endRollBack(volume, nil, Event{false, "RolledBack",
			"it is what it was at snapshot " + snapshot.Meta.Name}, now))
	case p.reason == reasonJobUnsupported:
		return rollBackFailed(volume, v.Jobs[jobID(volume.Meta.UID, "rollback")], p.message, now, d)
	}
	return p
}

// endRollBack ends the request, unless somebody asked for another one meanwhile. A refusal is told in the same transaction: whoever waits
// would take an end without one for a success.
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

// rollBackFailed ends a request that nothing can come of, after the job that found that out.
func rollBackFailed(volume *model.Volume, job *store.Job, why string, now time.Time, d *Decision) progress {
	refused := &model.Refusal{Reason: reasonRollBackFailed, Message: why}
	if job != nil {
		d.add(drop(volume, job))
	}
	d.add(endRollBack(volume, refused, Event{true, reasonRollBackFailed, why}, now))
	return progress{reason: reasonRollBackFailed, message: why, refused: refused}
}

// flatten has a copy of a volume in Ceph stand alone, so that the other one can be deleted.
func (v *View) flatten(volume *model.Volume, pool *model.StoragePool, now time.Time, d *Decision) progress {
	p := v.pursue(d, volume, pool, store.Job{ID: jobID(volume.Meta.UID, "flatten"), Action: store.JobFlattenImage,
		VolumeUID: volume.Meta.UID, Location: store.VolumeLocation(volume)}, v.manager(volume), now)
	if p.done != nil {
		d.add(modify(volume, func(o model.Object) bool {
			status := &o.(*model.Volume).Status
			had := status.SharesWith != ""
			status.SharesWith = ""
			return had
		}, &Event{false, "Flattened", "it shares nothing any more with the volume that it was made from"}),
			drop(volume, p.done))
	}
	return p
}

// copiedBy is a volume that is being made from another one, or shares its image still, which has to stay meanwhile; empty: none.
// Once the other's image is being deleted nothing can be made of it any more, and what its pool can't copy never will be.
func (v *View) copiedBy(volume *model.Volume) string {
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

// allocated takes up what the owner reports, where it differs by more than noise.
func (v *View) allocated(volume *model.Volume) (Action, bool) {
	r, told := v.report(volume.Meta.UID, volume.Status.Ownership.Owner)
	have, now := volume.Status.AllocatedBytes, r.AllocatedBytes
	differs := max(have-now, now-have)
	if !told || now < 0 || differs == 0 || have >= 0 && differs < volume.Spec.SizeBytes/64 {
		return Action{}, false
	}
	return modify(volume, func(o model.Object) bool {
		o.(*model.Volume).Status.AllocatedBytes = now
		return true
	}, nil), true
}

func (v *View) volumeConditions(volume *model.Volume, image progress, now time.Time, d *Decision) []model.Condition {
	is := volume.Status.Ownership
	wanted := v.target(volume.Meta.Name) != nil && !volume.Meta.Deleting()
	made := volume.Status.CapacityBytes > 0
	serves := is.State == model.Owned || is.State == model.Moving
	present := v.Standing(is.Owner)
	closed, why := v.unopenable(volume)
	ready := made && (!wanted && closed == "" || wanted && serves && present != Gone)
	reason, message := "Ready", choose(wanted, fmt.Sprintf("gateway %d owns it", is.Owner.Number), "no target exports it")
	switch {
	case !made:
		reason, message = cmp.Or(image.reason, "NoImage"), image.message
	case ready:
	case closed != "" && !serves:
		reason, message = closed, why
	case is.State == model.Fencing:
		reason, message = "Fencing", v.whyFencing(volume)
	case volume.Status.RollBack != nil:
		reason, message = "RollingBack", image.message
	case serves:
		reason, message = reasonOwnerDead, "its owner is gone, and no other gateway that reaches its data has a stream"
	case is.State == model.Opening, is.State == model.Acquiring:
		reason, message = string(is.State), "a gateway takes it"
	default:
		reason, message = reasonNoCandidate, "no gateway that reaches its data and exports its target has a stream"
	}
	absent := serves && present == Absent
	if left := NoStreamTold - now.Sub(v.link(is.Owner.Number).lost); absent && left > 0 {
		absent = false
		d.wait(left)
	}
	takenOut := v.takenOut(volume, v.StoragePools[volume.Spec.Pool])
	return []model.Condition{
		condition(model.ConditionReady, ready, reason, message),
		progressing(volume, wanted, image),
		degradedBy(v.refusals(volume), condition(model.ConditionDegraded,
			takenOut != "" || absent || closed != "" || image.reason == reasonJobFailed || image.reason == reasonJobUnsupported,
			choose(takenOut != "", reasonTakenOut, choose(absent, reasonNoStream, cmp.Or(closed, image.reason, "AllWell"))),
			cmp.Or(takenOut, choose(absent, "its owner has no stream to the control plane; it serves on", cmp.Or(why, image.message))))),
	}
}

// progressing says what is under way. A requested move that came to nothing is told until the next request, whatever else is.
func progressing(volume *model.Volume, wanted bool, image progress) model.Condition {
	status := &volume.Status
	state, deleting := status.Ownership.State, volume.Meta.Deleting()
	growing := status.CapacityBytes > 0 &&
		(status.CapacityBytes < volume.Spec.SizeBytes || status.RollBack != nil || status.SharesWith != "")
	busy, reason, message := true, "", ""
	switch {
	case growing || deleting:
		reason, message = cmp.Or(image.reason, "Growing"), image.message
	case wanted && (state == model.Moving || state == model.Opening || state == model.Acquiring):
		reason, message = string(state), image.message
	case status.MoveRequest != nil || status.Move != nil:
		reason = reasonMoveRequest
	default:
		busy, reason = false, "Settled"
	}
	if r := status.Refusal; r != nil && status.RollBack == nil && !deleting {
		reason, message = r.Reason, r.Message+choose(message == "", "", "; "+message)
	}
	return condition(model.ConditionProgressing, busy, reason, message)
}
