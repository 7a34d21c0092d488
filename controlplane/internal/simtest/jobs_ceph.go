package simtest

import (
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// doInCeph executes a job in Ceph.
func (w *Simulation) doInCeph(p *process, j *model.Job) model.JobResult {
	done := model.JobResult{DonePermille: model.JobDone}
	fail := func(problem string) model.JobResult { return model.JobResult{Problem: problem} }
	if w.blocklisted(p) {
		w.handleBlocklisting(p)
	}
	if !p.rados.recorded {
		return fail("no client that is recorded")
	}
	uid, _, _ := strings.Cut(j.ID, ".")
	volume := w.volumeOf(j)
	switch j.Action {
	case model.JobFenceClients:
		for _, client := range j.Clients {
			w.ceph.blocklisted[client] = true
		}
	case model.JobCreateImage, model.JobResizeImage:
		if w.lockedByAnother(p, uid) {
			return fail("in use")
		}
		w.images[j.Location] = max(w.images[j.Location], j.SizeBytes)
	case model.JobAdoptImage:
		if w.images[j.Location] == 0 {
			if w.images[j.Image] == 0 {
				return fail("no such image")
			}
			w.images[j.Location] = w.images[j.Image]
			delete(w.images, j.Image)
		}
		done.SizeBytes = w.images[j.Location]
	case model.JobCloneImage:
		return w.cloneInCeph(j)
	case model.JobFlattenImage:
		if w.lockedByAnother(p, uid) {
			return fail("in use")
		}
		delete(w.ceph.parents, j.Location)
	case model.JobRollBackImage:
		if w.lockedByAnother(p, uid) {
			return fail("in use")
		}
		if w.images[j.SnapshotLocation] == 0 {
			return fail("no such snapshot")
		}
		w.checkRolledBack(volume)
	case model.JobDeleteImage:
		return w.deleteInCeph(p, j, volume, uid)
	case model.JobCreateSnapshotImage:
		if w.images[j.Location] == 0 || w.ownedElsewhere(p, j.VolumeUID) && w.broken != AnyoneSnapshots {
			return fail("no such image, or another gateway owns it")
		}
		w.images[j.SnapshotLocation] = max(j.SizeBytes, 1)
		w.checkSnapshotTaken(p, j.VolumeUID)
	case model.JobDeleteSnapshotImage:
		delete(w.images, j.SnapshotLocation)
	}
	return done
}

// volumeOf returns the volume of a job; nil: the job is for another object.
func (w *Simulation) volumeOf(j *model.Job) *model.Volume {
	uid, _, _ := strings.Cut(j.ID, ".")
	for _, v := range w.volumes() {
		if v.Meta.UID == uid {
			return v
		}
	}
	return nil
}

// lockedByAnother reports whether a living client of another gateway has the image's lock: only its owner may manage the image.
func (w *Simulation) lockedByAnother(p *process, uid string) bool {
	held := w.ceph.locks[uid]
	return held.by != nil && held.by.alive && held.client != p.rados.client && !w.ceph.blocklisted[held.client]
}

// cloneInCeph makes an image that shares its parent's blocks until it is flattened.
func (w *Simulation) cloneInCeph(j *model.Job) model.JobResult {
	parent := j.SourceLocation
	if j.SnapshotOf != "" {
		parent = j.SnapshotOf
	}
	switch {
	case w.images[j.Location] != 0: // it was done before
	case w.images[parent] == 0 || w.images[j.SourceLocation] == 0:
		return model.JobResult{Problem: "no such image"}
	default:
		w.images[j.Location] = max(j.SizeBytes, 1)
		w.ceph.parents[j.Location] = parent
	}
	return model.JobResult{DonePermille: model.JobDone}
}

// deleteInCeph refuses, as Ceph does, while the image is open or a clone, even one in the trash, shares its blocks.
func (w *Simulation) deleteInCeph(p *process, j *model.Job, v *model.Volume, uid string) model.JobResult {
	w.checkDeletedInCeph(v, j)
	if w.lockedByAnother(p, uid) {
		return model.JobResult{Problem: "in use"}
	}
	if j.TrashSeconds == 0 {
		for clone, parent := range w.ceph.parents {
			if parent == j.Location {
				return model.JobResult{Problem: "shares its blocks with " + clone}
			}
		}
		delete(w.ceph.parents, j.Location)
	}
	delete(w.images, j.Location)
	return model.JobResult{DonePermille: model.JobDone}
}
