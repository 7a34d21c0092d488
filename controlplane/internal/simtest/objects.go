package simtest

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Bounds of the objects that users make: enough for them to interact.
const (
	maxVolumes   = 7
	maxSnapshots = 3
	maxTargets   = 2
)

// noReflink is the pool whose file system cannot share blocks between files.
const noReflink = "pool-2"

// all returns the objects of a kind, by name.
func all[T model.Object](w *Simulation) []T {
	var found []T
	for _, o := range w.store.objects {
		if object, ok := o.(T); ok {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b T) int { return cmp.Compare(a.Metadata().Name, b.Metadata().Name) })
	return found
}

// anyOf returns any object of a kind; false: there is none.
func anyOf[T model.Object](w *Simulation) (T, bool) {
	found := all[T](w)
	if len(found) == 0 {
		var none T
		return none, false
	}
	return pick(w, found), true
}

func (w *Simulation) volumes() []*model.Volume { return all[*model.Volume](w) }

func (w *Simulation) anyVolume() *model.Volume {
	volume, _ := anyOf[*model.Volume](w)
	return volume
}

// gateway returns nil once the gateway was removed.
func (w *Simulation) gateway(name string) *model.Gateway {
	return get[*model.Gateway](w.store, model.KindGateway, name)
}

func (w *Simulation) volume(name string) *model.Volume {
	return get[*model.Volume](w.store, model.KindVolume, name)
}

func (w *Simulation) deliverAll(p *process) {
	w.deliverSecrets(p)
	w.forgetUnmapped(p)
	for _, v := range w.volumes() {
		w.deliverOwnership(p, v)
	}
}

func (w *Simulation) makeVolume(name, pool string, size int64, from model.VolumeSource) {
	w.sizes[name] = size
	w.store.put(&model.Volume{Meta: model.Meta{Name: name, UID: name + "-uid"},
		Spec:   model.VolumeSpec{Pool: pool, SizeBytes: size, ReclaimPolicy: model.ReclaimDelete, Source: from},
		Status: model.VolumeStatus{AllocatedBytes: -1, Ownership: model.Ownership{State: model.Unowned}}})
}

func (w *Simulation) makeTarget(name string, volumes ...string) {
	t := &model.Target{Meta: model.Meta{Name: name, UID: name}, Spec: model.TargetSpec{GatewayPool: "default", Paths: 2}}
	for i, v := range volumes {
		t.Spec.Luns = append(t.Spec.Luns, model.TargetLun{ID: int32(i), Volume: v})
	}
	w.store.put(t)
}

// name returns a name for a new object.
func (w *Simulation) name(what string) string {
	w.made++
	return fmt.Sprintf("%s-%d", what, w.made)
}

// referrers returns the objects that refer to a volume: its snapshots, and the target that maps it.
func (w *Simulation) referrers(volume string) []string {
	var who []string
	for _, s := range all[*model.Snapshot](w) {
		if s.Spec.Volume == volume {
			who = append(who, "snapshot "+s.Meta.Name)
		}
	}
	if t := w.mappedBy(volume); t != nil {
		who = append(who, "target "+t.Meta.Name)
	}
	return who
}

// madeFrom reports whether a volume was made from a snapshot, and therefore refers to it.
func (w *Simulation) madeFrom(snapshot string) bool {
	return slices.ContainsFunc(w.volumes(), func(v *model.Volume) bool { return v.Spec.Source.Snapshot == snapshot })
}

// deleteObject marks an object as deleted, as the store does.
func (w *Simulation) deleteObject(object model.Object) {
	if object.Metadata().Deleting() {
		return
	}
	marked, at := copyOf(object), w.now
	marked.Metadata().DeleteTime = &at
	w.store.put(marked)
}

// userOfCopies takes snapshots, makes volumes from them and from other volumes, and deletes objects.
func (w *Simulation) userOfCopies() {
	switch w.random.IntN(14) {
	case 0, 1, 2, 3:
		if v := w.anyVolume(); v != nil && !v.Meta.Deleting() && len(all[*model.Snapshot](w)) < maxSnapshots {
			name := w.name("s")
			w.store.put(&model.Snapshot{Meta: model.Meta{Name: name, UID: name + "-uid"},
				Spec: model.SnapshotSpec{Volume: v.Meta.Name, ReclaimPolicy: model.ReclaimDelete}})
		}
	case 4, 5:
		w.makeClone()
	case 6, 7:
		if s, found := anyOf[*model.Snapshot](w); found && (!w.madeFrom(s.Meta.Name) || w.broken == NoReferences) {
			w.deleteObject(s)
		}
	case 8:
		v := w.anyVolume()
		if v != nil && v.Spec.Source != (model.VolumeSource{}) && len(w.referrers(v.Meta.Name)) == 0 {
			w.deleteObject(v)
		}
	case 9:
		if t, found := anyOf[*model.Target](w); found && w.chance(8) {
			w.deleteObject(t)
		}
	case 10:
		if len(all[*model.Target](w)) < maxTargets {
			w.makeTarget(w.name("t"))
		}
	case 11:
		w.deleteGateway()
	case 12, 13:
		if len(w.volumes()) < 5 {
			name := w.name("v")
			w.makeVolume(name, pick(w, []string{"pool-1", "pool-1", noReflink, cephPool, cephPool}), 1<<30, model.VolumeSource{})
			w.remap(w.volume(name))
		}
	}
}

// makeClone makes a volume from a snapshot, or from another volume.
func (w *Simulation) makeClone() {
	if len(w.volumes()) >= maxVolumes {
		return
	}
	if s, found := anyOf[*model.Snapshot](w); found && w.chance(2) {
		if from := w.volume(s.Spec.Volume); from != nil && !s.Meta.Deleting() {
			w.makeVolume(w.name("v"), from.Spec.Pool, from.Spec.SizeBytes, model.VolumeSource{Snapshot: s.Meta.Name})
		}
	} else if from := w.anyVolume(); from != nil && !from.Meta.Deleting() {
		w.makeVolume(w.name("v"), from.Spec.Pool, from.Spec.SizeBytes, model.VolumeSource{Volume: from.Meta.Name})
	}
}

// deleteGateway requests the deletion of a gateway whose node has another one that stays.
func (w *Simulation) deleteGateway() {
	g, _ := anyOf[*model.Gateway](w)
	others := func(other *model.Gateway) bool {
		return other != g && other.Spec.Node == g.Spec.Node && !other.Meta.Deleting()
	}
	if !w.chance(16) || !slices.ContainsFunc(all[*model.Gateway](w), others) {
		return
	}
	w.deleteObject(g)
	if w.broken == NoFinalizer {
		w.removeGateway(w.gateway(g.Meta.Name), len(w.store.log))
	}
}

// removeGateway removes a gateway from the store. The user who requested that stops its process.
func (w *Simulation) removeGateway(g *model.Gateway, logRead int) {
	w.checkGatewayGoes(g, logRead)
	w.store.remove(g)
	w.removed[g.Status.Number] = len(w.store.log)
	w.crash(w.running[g.Meta.Name])
}
