package simtest

import (
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// LoseAllButOne ends all gateways but one permanently, after everything has recovered. It reports the volumes in Ceph that the
// remaining gateway does not come to own. Only that gateway can report that the others are gone, even those with which it shared
// no path set.
func (w *Simulation) LoseAllButOne() {
	var taking []*process
	for _, name := range w.names {
		if g := w.gateway(name); g != nil && takesVolumes(g) && w.running[name].runs() {
			taking = append(taking, w.running[name])
		}
	}
	if len(taking) == 0 {
		return
	}
	survivor := pick(w, taking)
	for _, name := range w.names {
		if p := w.running[name]; p != survivor && p.runs() {
			w.trouble[name] = w.now
			w.crash(p)
		}
	}
	l := w.leaders[len(w.leaders)-1]
	for range maxRounds {
		w.stepAll(l)
		w.now = w.now.Add(time.Second)
		if len(w.unserved(survivor)) == 0 {
			return
		}
	}
	for _, v := range w.unserved(survivor) {
		w.violate("%s finds no owner, though %s is left: %+v", v.Meta.Name, survivor.ref, v.Status.Ownership)
	}
}

func (w *Simulation) unserved(by *process) []*model.Volume {
	return slices.DeleteFunc(w.volumes(), func(v *model.Volume) bool {
		t := w.mappedBy(v.Meta.Name)
		if !inCeph(v) || v.Meta.Deleting() || t == nil || t.Meta.Deleting() || w.cannotBeMade(v) || w.cannotBeFenced(v) {
			return true
		}
		o := v.Status.Ownership
		return o.State == model.Owned && o.Owner == by.ref && by.unit(v.Meta.UID).serving == o.Epoch
	})
}
