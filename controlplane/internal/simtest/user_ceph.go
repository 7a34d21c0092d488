package simtest

import (
	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// foreign images belong to other programs.
	foreign = "image-"
	// maxForeign is the size of the largest one, in bytes.
	maxForeign = 2 << 30
)

// userOfCeph makes a request that is possible only in Ceph.
func (w *Simulation) userOfCeph() {
	switch w.random.IntN(6) {
	case 0, 1:
		if s, found := anyOf[*model.Snapshot](w); found {
			w.rollBack(s)
		}
	case 2:
		if len(w.volumes()) < maxVolumes {
			name := w.name("v")
			image := foreign + name
			w.images[image] = pick(w, []int64{1 << 30, maxForeign})
			w.makeVolume(name, cephPool, 1<<30, model.VolumeSource{Image: image})
			w.remap(w.volume(name))
		}
	case 3:
		if v := w.anyVolume(); v != nil && inCeph(v) && v.Status.CapacityBytes == 0 && v.Spec.Source.Image != "" {
			changed := copyOf(v).(*model.Volume)
			changed.Spec.SizeBytes = max(v.Spec.SizeBytes, maxForeign)
			w.sizes[v.Meta.Name] = changed.Spec.SizeBytes
			w.store.put(changed)
		}
	case 4, 5:
		if v := w.anyVolume(); v != nil && inCeph(v) && !v.Meta.Deleting() {
			changed := copyOf(v).(*model.Volume)
			changed.Spec.ReclaimPolicy = pick(w, []model.ReclaimPolicy{model.ReclaimDelete, model.ReclaimRetain,
				model.ReclaimTrash})
			w.store.put(changed)
		}
	}
}

// rollBack is store.RequestRollBack.
func (w *Simulation) rollBack(s *model.Snapshot) {
	v := w.volume(s.Spec.Volume)
	if v == nil || !inCeph(v) || !s.Status.Ready || s.Meta.Deleting() || v.Status.RollBack != nil ||
		w.mappedBy(v.Meta.Name) != nil || v.Status.Ownership.State != model.Unowned {
		return
	}
	changed := copyOf(v).(*model.Volume)
	changed.Status.RollBack = &model.RollBackRequest{Snapshot: s.Meta.UID, Since: w.now}
	w.store.put(changed)
}
