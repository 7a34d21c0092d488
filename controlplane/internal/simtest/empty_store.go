package simtest

import (
	"cmp"
	"maps"
	"slices"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// emptyStore starts a control plane with an empty store, in which administrators make the same gateways, pools and volumes. Later
// the system's store is available again. Gateways do not follow the other store, so the volumes stay served.
func (w *Simulation) emptyStore() {
	before := map[string][]string{}
	for _, name := range w.names {
		for uid, u := range w.running[name].units {
			if u.serving != 0 {
				before[name] = append(before[name], uid)
			}
		}
	}
	whole := w.store
	for _, name := range w.names {
		w.disconnect(w.running[name])
	}
	w.store = newMemory()
	w.store.system = "second"
	w.makeObjects(whole)
	w.leaders = nil
	w.elect()
	l := w.leaders[0]
	for range emptyRounds {
		for _, name := range w.names {
			p := w.running[name]
			if !p.stream {
				w.connect(p)
			}
			w.followStore(p)
		}
		l.listen(w, len(w.store.log))
		for _, key := range l.view.Everything() {
			l.decide(w, key)
		}
		for len(l.pending) > 0 {
			l.carryOut(w, 0)
		}
	}
	for _, v := range w.volumes() {
		if o := v.Status.Ownership; !o.Owner.IsZero() || !o.Next.IsZero() {
			w.violate("an empty store assigns %s to %s", v.Meta.Name, o.Owner)
		}
	}
	for _, name := range w.names {
		p := w.running[name]
		for _, uid := range before[name] {
			if p.units[uid].serving == 0 {
				w.violate("%s no longer serves %s, for an empty store does not know it", p.ref, uid)
			}
		}
	}
	for _, name := range w.names {
		w.disconnect(w.running[name])
	}
	w.store, w.leaders = whole, nil
	w.elect()
	for _, name := range w.names {
		w.connect(w.running[name])
	}
}

// emptyRounds are enough for a volume to be made and to find an owner.
const emptyRounds = 8

// makeObjects makes the objects of another store again, as an administrator does: names and numbers are the same, uids differ.
func (w *Simulation) makeObjects(of *memory) {
	for _, key := range slices.SortedFunc(maps.Keys(of.objects), func(a, b decide.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}) {
		switch o := copyOf(of.objects[key]).(type) {
		case *model.Gateway:
			o.Status.Health, o.Status.Drain, o.Meta.DeleteTime = model.GatewayNew, false, nil
			w.store.put(o)
		case *model.StoragePool:
			o.Status = model.StoragePoolStatus{}
			w.store.put(o)
		case *model.Volume:
			w.store.put(&model.Volume{Meta: model.Meta{Name: o.Meta.Name, UID: o.Meta.UID + "-again"}, Spec: model.VolumeSpec{Pool: o.Spec.Pool,
				SizeBytes: o.Spec.SizeBytes, ReclaimPolicy: model.ReclaimDelete},
				Status: model.VolumeStatus{AllocatedBytes: -1, Ownership: model.Ownership{State: model.Unowned}}})
		case *model.Target:
			w.store.put(&model.Target{Meta: model.Meta{Name: o.Meta.Name, UID: o.Meta.UID + "-again"}, Spec: o.Spec})
		case *model.Fabric:
			w.store.put(o)
		}
	}
}

// followStore makes a gateway close the volumes that the store of its stream does not have.
func (w *Simulation) followStore(p *process) {
	if !p.stream || !p.runs() {
		return
	}
	known := func(uid string) bool {
		return slices.ContainsFunc(w.volumes(), func(v *model.Volume) bool { return v.Meta.UID == uid })
	}
	for uid, u := range p.units {
		if u.serving != 0 && !known(uid) {
			w.close(p, uid)
		}
	}
}

// admitted reports whether a gateway belongs to the system of the store. A gateway without a system joins this one.
func (w *Simulation) admitted(p *process) bool {
	i := w.identity
	if i == nil {
		return true
	}
	if i.systems[p.name] == "" {
		i.systems[p.name] = w.store.system
	}
	return i.systems[p.name] == w.store.system || w.broken == NoSystem
}
