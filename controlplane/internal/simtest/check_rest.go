package simtest

import (
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// CheckRest reports everything that has not recovered although nothing prevents it.
func (w *Simulation) CheckRest() {
	for _, v := range w.volumes() {
		name, o := v.Meta.Name, v.Status.Ownership
		if v.Meta.Deleting() {
			if !w.copyIsTooSmall(v) && !w.cannotBeFenced(v) {
				w.violate("%s was deleted and is there still, %s", name, o.State)
			}
			continue
		}
		if v.Status.MoveRequest != nil {
			w.violate("a request to move %s has not ended", name)
		}
		if w.cannotBeMade(v) || w.cannotBeFenced(v) {
			continue
		}
		if v.Spec.SizeBytes != w.sizes[name] || v.Status.CapacityBytes != v.Spec.SizeBytes {
			w.violate("%s has %d bytes, wanted are %d", name, v.Status.CapacityBytes, w.sizes[name])
		}
		if image := w.images[model.VolumeLocation(v)]; !inCeph(v) && image > v.Status.CapacityBytes {
			w.violate("%s has %d bytes and an image of %d, which can't be opened", name, v.Status.CapacityBytes, image)
		}
		t := w.mappedBy(name)
		if t == nil || t.Meta.Deleting() {
			if o.State != model.Unowned {
				w.violate("%s is %s, though no target maps it", name, o.State)
			}
			continue
		}
		if !w.anyTakes(v.Spec.Pool) {
			continue // each gateway that could own it drains
		}
		p := w.process(o.Owner)
		if o.State != model.Owned || p == nil || !p.runs() || p.unit(v.Meta.UID).serving != o.Epoch {
			w.violate("%s finds no owner: %+v", name, o)
		} else if !slices.Contains(t.Status.PathSet, o.Owner.Number) {
			w.violate("%s is owned by %s, which does not export it", name, o.Owner)
		}
	}
	for _, g := range all[*model.Gateway](w) {
		w.checkDrain(g)
	}
	w.checkRemoved()
	w.checkSnapshots()
	w.checkImages()
	w.checkMade()
	w.checkRestOfCeph()
}

// checkDrain: a gateway drains, unless no other gateway can take its volumes, or a target would be left with one path.
func (w *Simulation) checkDrain(g *model.Gateway) {
	if g.Meta.Deleting() {
		if w.mayLeave(g) {
			w.violate("%s was deleted and is there still, %s", g.Meta.Name, g.Status.Health)
		}
		return
	}
	if !g.Status.Drain {
		if g.Status.Health != model.GatewayReady {
			w.violate("%s is %s, though nothing is wrong with it", g.Meta.Name, g.Status.Health)
		}
		return
	}
	if w.mayLeave(g) && g.Status.Health != model.GatewayDrained && !w.ownsUnfenced(g) {
		w.violate("%s does not drain: %s", g.Meta.Name, g.Status.Health)
	}
}

// ownsUnfenced reports whether a gateway owns a volume of which the clients that could write it are unknown.
func (w *Simulation) ownsUnfenced(g *model.Gateway) bool {
	return slices.ContainsFunc(w.volumes(), func(v *model.Volume) bool {
		return v.Status.Ownership.Owner.Number == g.Status.Number && w.cannotBeFenced(v)
	})
}

// mayLeave reports whether others can take what a gateway has: one gateway of its node, and two for a target's paths.
func (w *Simulation) mayLeave(g *model.Gateway) bool {
	taking := 0
	for _, other := range all[*model.Gateway](w) {
		if takesVolumes(other) {
			taking++
		}
	}
	return w.anyTakes("pool-"+g.Spec.Node[len("node-"):]) && taking >= 2
}

func takesVolumes(g *model.Gateway) bool { return !g.Status.Drain && !g.Meta.Deleting() }

// anyTakes reports whether a gateway that reaches a pool does not drain.
func (w *Simulation) anyTakes(pool string) bool {
	local := get[*model.StoragePool](w.store, model.KindStoragePool, pool).Spec.Local
	return slices.ContainsFunc(all[*model.Gateway](w), func(g *model.Gateway) bool {
		return (local == nil || g.Spec.Node == local.Node) && takesVolumes(g)
	})
}

// copyIsTooSmall reports whether a volume has a copy that must be enlarged by a user: the source grew, and stays until then.
func (w *Simulation) copyIsTooSmall(source *model.Volume) bool {
	return slices.ContainsFunc(w.volumes(), func(v *model.Volume) bool {
		return v.Spec.Source.Volume == source.Meta.Name && w.cannotBeMade(v) && reasonOf(v.Status.Conditions) == "SourceLarger"
	})
}

// cannotBeMade reports whether a volume rightly has no image: its pool cannot copy, or its source is gone or larger.
func (w *Simulation) cannotBeMade(v *model.Volume) bool {
	from := v.Spec.Source
	if v.Status.CapacityBytes == 0 && from.Image != "" {
		return v.Spec.SizeBytes < maxForeign && reasonOf(v.Status.Conditions) == "SourceLarger"
	}
	if v.Status.CapacityBytes != 0 || from.Snapshot == "" && from.Volume == "" {
		return false
	}
	source, size := w.volume(from.Volume), int64(0)
	if source != nil {
		size = source.Spec.SizeBytes
	}
	if s := get[*model.Snapshot](w.store, model.KindSnapshot, from.Snapshot); s != nil {
		if !s.Status.Ready {
			return true // checkSnapshots covers this
		}
		source, size = w.volume(s.Spec.Volume), s.Status.SizeBytes
	}
	if reasonOf(v.Status.Conditions) == "SourceLarger" { // it grew after the copy was requested
		return size > v.Spec.SizeBytes
	}
	if source == nil {
		return reasonOf(v.Status.Conditions) == "SourceMissing"
	}
	return v.Spec.Pool == noReflink && reasonOf(v.Status.Conditions) == "Unsupported" || w.cannotBeMade(source)
}

// reasonOf returns the reason of the Ready condition.
func reasonOf(conditions []model.Condition) string {
	for _, c := range conditions {
		if c.Type == model.ConditionReady {
			return c.Reason
		}
	}
	return ""
}

// checkSnapshots: each snapshot was taken, unless its pool cannot; each deleted one is gone.
func (w *Simulation) checkSnapshots() {
	for _, s := range all[*model.Snapshot](w) {
		v := w.volume(s.Spec.Volume)
		switch {
		case s.Meta.Deleting():
			w.violate("snapshot %s was deleted and is there still", s.Meta.Name)
		case s.Status.Ready:
			if w.images[model.SnapshotLocation(s)] == 0 {
				w.violate("snapshot %s is said to be taken and has no image", s.Meta.Name)
			}
		case v == nil:
			w.violate("snapshot %s has outlived its volume", s.Meta.Name)
		case v.Status.CapacityBytes == 0 || !w.anyTakes(v.Spec.Pool) || w.cannotBeFenced(v):
		case v.Spec.Pool != noReflink:
			w.violate("snapshot %s was never taken: %s", s.Meta.Name, reasonOf(s.Status.Conditions))
		case reasonOf(s.Status.Conditions) != "Unsupported":
			w.violate("snapshot %s can't be taken, and is said to be %s", s.Meta.Name, reasonOf(s.Status.Conditions))
		}
	}
}

// checkImages: nothing is left of deleted objects.
func (w *Simulation) checkImages() {
	known := maps.Clone(w.kept)
	for _, v := range w.volumes() {
		known[model.VolumeLocation(v)] = true
	}
	for _, s := range all[*model.Snapshot](w) {
		known[model.SnapshotLocation(s)] = true
	}
	for location := range w.images {
		if !known[location] && !strings.HasPrefix(location, foreign) {
			w.violate("%s was left behind", location)
		}
	}
}

// checkRemoved: a removed gateway has nothing.
func (w *Simulation) checkRemoved() {
	for number := range w.removed {
		for _, v := range w.volumes() {
			if o := v.Status.Ownership; o.Owner.Number == number || o.Next.Number == number {
				w.violate("%s is %s by gateway %d, which was removed", v.Meta.Name, o.State, number)
			}
		}
		for _, t := range all[*model.Target](w) {
			if slices.Contains(t.Status.PathSet, number) {
				w.violate("%s is exported by gateway %d, which was removed", t.Meta.Name, number)
			}
		}
	}
}
