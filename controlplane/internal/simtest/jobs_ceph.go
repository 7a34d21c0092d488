package simtest

import (
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// doInCeph is what a gateway makes of a job in Ceph.
func (w *World) doInCeph(p *process, j *store.Job) store.JobResult {
	done := store.JobResult{DonePermille: store.JobDone}
	fail := func(problem string) store.JobResult { return store.JobResult{Problem: problem} }
	if w.blocklisted(p) {
		w.lose(p)
	}
	if !p.rados.recorded {
		return fail("no client that is recorded")
	}
	uid, _, _ := strings.Cut(j.ID, ".")
	volume := w.volumeOf(j)
	switch j.Action {
	case store.JobFenceClients:
		for _, client := range j.Clients {
			w.ceph.blocklisted[client] = true
		}
	case store.JobCreateImage, store.JobResizeImage:
		if w.lockedByAnother(p, uid) {
			return fail("in use")
		}
		w.images[j.Location] = max(w.images[j.Location], j.SizeBytes)
	case store.JobAdoptImage:
		if w.images[j.Location] == 0 {
			if w.images[j.Image] == 0 {
				return fail("no such image")
			}
			w.images[j.Location] = w.images[j.Image]
			delete(w.images, j.Image)
		}
		done.SizeBytes = w.images[j.Location]
	case store.JobCloneImage:
		return w.cloneInCeph(j)
	case store.JobFlattenImage:
		if w.lockedByAnother(p, uid) {
			return fail("in use")
		}
		delete(w.ceph.parents, j.Location)
	case store.JobRollBackImage:
		if w.lockedByAnother(p, uid) {
			return fail("in use")
		}
		if w.images[j.SnapshotLocation] == 0 {
			return fail("no such snapshot")
		}
		w.checkRolledBack(volume)
	case store.JobDeleteImage:
		return w.deleteInCeph(p, j, volume, uid)
	case store.JobCreateSnapshotImage:
		if w.images[j.Location] == 0 || w.ownedElsewhere(p, j.VolumeUID) && w.broken != AnyoneSnapshots {
			return fail("no such image, or another gateway owns it")
		}
		w.images[j.SnapshotLocation] = max(j.SizeBytes, 1)
		w.checkSnapshotTaken(p, j.VolumeUID)
	case store.JobDeleteSnapshotImage:
		delete(w.images, j.SnapshotLocation)
	}
	return done
}

// volumeOf a job, nil where it is for something else.
func (w *World) volumeOf(j *store.Job) *model.Volume {
	uid, _, _ := strings.Cut(j.ID, ".")
	for _, v := range w.volumes() {
		if v.Meta.UID == uid {
			return v
		}
	}
	return nil
}

// lockedByAnother client that lives: its image is its own to manage.
func (w *World) lockedByAnother(p *process, uid string) bool {
	held := w.ceph.locks[uid]
	return held.by != nil && held.by.alive && held.client != p.rados.client && !w.ceph.blocklisted[held.client]
}

// cloneInCeph makes an image that shares its parent's blocks, until it is flattened.
func (w *World) cloneInCeph(j *store.Job) store.JobResult {
	parent := j.SourceLocation
	if j.SnapshotOf != "" {
		parent = j.SnapshotOf
	}
	switch {
	case w.images[j.Location] != 0: // it was done before
	case w.images[parent] == 0 || w.images[j.SourceLocation] == 0:
		return store.JobResult{Problem: "no such image"}
	default:
		w.images[j.Location] = max(j.SizeBytes, 1)
		w.ceph.parents[j.Location] = parent
	}
	return store.JobResult{DonePermille: store.JobDone}
}

// deleteInCeph refuses, as Ceph does, while the image is open or a clone shares its blocks, also one in the trash.
func (w *World) deleteInCeph(p *process, j *store.Job, v *model.Volume, uid string) store.JobResult {
	w.checkDeletedInCeph(v, j)
	if w.lockedByAnother(p, uid) {
		return store.JobResult{Problem: "in use"}
	}
	if j.TrashSeconds == 0 {
		for clone, parent := range w.ceph.parents {
			if parent == j.Location {
				return store.JobResult{Problem: "shares its blocks with " + clone}
			}
		}
		delete(w.ceph.parents, j.Location)
	}
	delete(w.images, j.Location)
	return store.JobResult{DonePermille: store.JobDone}
}
