package simtest

import (
	"maps"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// work executes the gateway's jobs.
func (w *Simulation) work(p *process) {
	if !p.runs() || !p.stream {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.store.jobs)) {
		j := *w.store.jobs[id]
		if j.Gateway != p.ref.Number || j.Ended() {
			continue
		}
		switch {
		case w.faulty && w.chance(4):
			j.Result = model.JobResult{Problem: "no luck"}
		case j.PoolUID == cephPool:
			j.Result = w.doInCeph(p, &j)
		default:
			j.Result = w.do(p, &j)
		}
		if w.faulty && w.chance(8) {
			continue // its result is lost
		}
		j.Result.At = w.now
		w.store.putJob(j)
	}
}

// do executes a job, idempotently.
func (w *Simulation) do(p *process, j *model.Job) model.JobResult {
	done := model.JobResult{DonePermille: model.JobDone}
	if problem := w.storageMismatch(j.PoolUID); problem != "" {
		return model.JobResult{Problem: problem}
	}
	if w.identity != nil && w.identity.pools[j.PoolUID].away {
		return w.doBelow(j)
	}
	switch j.Action {
	case model.JobDeleteImage:
		if h := w.disk(j.VolumeUID).holder; h != nil && h.alive {
			return model.JobResult{Problem: "not deleted: in use"}
		}
		delete(w.images, j.Location)
	case model.JobDeleteSnapshotImage:
		delete(w.images, j.SnapshotLocation)
	case model.JobCreateSnapshotImage:
		if w.ownedElsewhere(p, j.VolumeUID) && w.broken != AnyoneSnapshots {
			return model.JobResult{Problem: "another gateway owns the volume"}
		}
		if h := w.disk(j.VolumeUID).holder; h != nil && h != p && h.alive {
			return model.JobResult{Problem: "not taken: in use"}
		}
		result := w.reflink(j.Location, j.SnapshotLocation, j.PoolUID, j.SizeBytes)
		if result.Problem == "" {
			w.checkSnapshotTaken(p, j.VolumeUID)
		}
		return result
	case model.JobCloneImage:
		return w.reflink(j.SourceLocation, j.Location, j.PoolUID, j.SizeBytes)
	default:
		w.images[j.Location] = max(w.images[j.Location], j.SizeBytes)
	}
	return done
}

// ownedElsewhere reports whether a gateway does not serve a volume although it knows that the volume has an owner.
func (w *Simulation) ownedElsewhere(p *process, uid string) bool {
	u := p.units[uid]
	return u != nil && u.serving == 0 && u.received.Epoch != 0 && u.received.State != model.Unowned
}

func (w *Simulation) reflink(from, to, pool string, size int64) model.JobResult {
	switch {
	case w.images[to] != 0: // it was done before
	case pool == noReflink:
		return model.JobResult{Problem: "the filesystem can't share blocks", Unsupported: true}
	case w.images[from] == 0:
		return model.JobResult{Problem: "no such file"}
	default:
		w.images[to] = max(size, w.images[from])
	}
	return model.JobResult{DonePermille: model.JobDone}
}
