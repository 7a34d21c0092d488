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
	if len(d.Actions) > 0 {
		return d
	}
	var image progress
	switch {
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
	if c, needed := conditions(volume, v.volumeConditions(volume, image), now); needed {
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
	case pool.Spec.Local != nil && len(pool.Spec.Local.Devices) > 0:
		return progress{reason: reasonJobUnsupported,
			message: "volumes on whole devices are not made by the control plane: use a pool with a directory"}
	case have >= want:
		return v.finish(volume, d)
	}
	job := store.Job{ID: jobID(volume.Meta.UID, "resize"), Action: store.JobResizeImage,
		Location: store.VolumeLocation(volume), SizeBytes: want}
	if have == 0 {
		job.ID, job.Action = jobID(volume.Meta.UID, "create"), store.JobCreateImage
		source, problem := v.source(volume)
		if problem.reason != "" {
			return problem
		}
		if source != "" {
			job.Action, job.SourceLocation = store.JobCloneImage, source
		}
	}
	p := v.pursue(d, volume, pool, job, volume.Status.Ownership.Owner.Number, false, now)
	if p.done != nil {
		size := p.done.SizeBytes
		d.add(modify(volume, func(o model.Object) bool {
			status := &o.(*model.Volume).Status
			if status.CapacityBytes >= size {
				return false
			}
			status.CapacityBytes = size
			return true
		}, &Event{false, choose(have == 0, "Created", "Grown"), fmt.Sprintf("its image has %d bytes", size)}),
			drop(volume, p.done))
	}
	return p
}

// finish forgets jobs that were done before their result could be dropped.
func (v *View) finish(volume *model.Volume, d *Decision) progress {
	for _, what := range []string{"create", "resize"} {
		if job := v.Jobs[jobID(volume.Meta.UID, what)]; job != nil && job.Ended() {
			d.add(drop(volume, job))
		}
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
		return store.SnapshotLocation(snapshot), progress{}
	case from.Volume != "":
		source := v.Volumes[from.Volume]
		if source == nil || v.Jobs[jobID(source.Meta.UID, "delete")] != nil {
			return "", missing
		}
		if source.Status.CapacityBytes == 0 {
			return "", progress{reason: "SourceNotReady", message: "volume " + from.Volume + " is not ready"}
		}
		return store.VolumeLocation(source), progress{}
	}
	return "", progress{}
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
	if pool == nil || volume.Spec.ReclaimPolicy == model.ReclaimRetain {
		for _, what := range []string{"create", "resize", "delete"} {
			if job := v.Jobs[jobID(volume.Meta.UID, what)]; job != nil {
				d.add(drop(volume, job))
			}
		}
		d.add(remove)
		return progress{}
	}
	deletion := store.Job{ID: jobID(volume.Meta.UID, "delete"), Action: store.JobDeleteImage,
		PoolUID: pool.Meta.UID, Location: store.VolumeLocation(volume)}
	if !v.callOff(d, volume, deletion, jobID(volume.Meta.UID, "create"), jobID(volume.Meta.UID, "resize")) {
		return progress{reason: reasonJobRuns, message: "what was begun is called off"}
	}
	if volume.Status.CapacityBytes == 0 && v.Jobs[deletion.ID] == nil {
		d.add(remove)
		return progress{}
	}
	p := v.pursue(d, volume, pool, deletion, 0, false, now)
	if p.done != nil {
		d.add(drop(volume, p.done), remove)
	}
	return p
}

// copiedBy is a volume that is being made from another one, which has to stay meanwhile; empty: none. Once the other's image is
// being deleted nothing can be made of it any more, and what its pool can't copy never will be.
func (v *View) copiedBy(volume *model.Volume) string {
	if v.Jobs[jobID(volume.Meta.UID, "delete")] != nil {
		return ""
	}
	for _, name := range names(v.Volumes) {
		other := v.Volumes[name]
		copying := v.Jobs[jobID(other.Meta.UID, "create")]
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

func (v *View) volumeConditions(volume *model.Volume, image progress) []model.Condition {
	is := volume.Status.Ownership
	wanted := v.target(volume.Meta.Name) != nil && !volume.Meta.Deleting()
	made := volume.Status.CapacityBytes > 0
	serves := is.State == model.Owned || is.State == model.Moving
	present := v.Standing(is.Owner)
	ready := made && (!wanted || serves && present != Gone)
	reason, message := "Ready", choose(wanted, fmt.Sprintf("gateway %d owns it", is.Owner.Number), "no target exports it")
	switch {
	case !made:
		reason, message = cmp.Or(image.reason, "NoImage"), image.message
	case ready:
	case is.State == model.Fencing:
		reason, message = "Fencing", fmt.Sprintf("gateway %s, the owner, is gone and has yet to be shut out", is.Fence)
	case serves:
		reason, message = reasonOwnerDead, "its owner is gone, and no other gateway that reaches its data has a stream"
	case is.State == model.Opening, is.State == model.Acquiring:
		reason, message = string(is.State), "a gateway takes it"
	default:
		reason, message = reasonNoCandidate, "no gateway that reaches its data and exports its target has a stream"
	}
	growing := made && volume.Status.CapacityBytes < volume.Spec.SizeBytes
	busy := wanted && (is.State == model.Moving || is.State == model.Opening || is.State == model.Acquiring) ||
		growing || volume.Meta.Deleting()
	why := choose(growing || volume.Meta.Deleting(), cmp.Or(image.reason, "Growing"), string(is.State))
	absent := serves && present == Absent
	return []model.Condition{
		condition(model.ConditionReady, ready, reason, message),
		condition(model.ConditionProgressing, busy, choose(busy, why, "Settled"), choose(busy, image.message, "")),
		degradedBy(v.refusals(volume), condition(model.ConditionDegraded,
			absent || image.reason == reasonJobFailed || image.reason == reasonJobUnsupported,
			choose(absent, reasonNoStream, cmp.Or(image.reason, "AllWell")),
			choose(absent, "its owner has no stream to the control plane; it serves on", image.message))),
	}
}
