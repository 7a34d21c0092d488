package simtest

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

func (w *Simulation) fault(p *process) {
	name := p.name
	switch w.random.IntN(15) {
	case 0:
		if p.alive {
			w.crash(p)
			w.trouble[name] = w.now
		}
	case 1, 2:
		if !p.alive {
			w.start(name)
		}
	case 3:
		if p.runs() {
			p.frozen = true
			w.trouble[name] = w.now
		}
	case 4:
		p.frozen = false
	case 5:
		w.cut[name] = true
		w.disconnect(p)
	case 6, 7:
		delete(w.cut, name)
		w.connect(p)
	case 8:
		w.cutPeers[name] = true
		w.trouble[name] = w.now
	case 9:
		delete(w.cutPeers, name)
	case 10:
		if p.frozen {
			w.disconnect(p) // its replica received no heartbeat
		}
	case 11:
		if w.chance(4) {
			w.elect()
		} else if w.chance(4) {
			w.restore()
		}
	case 12, 13:
		w.stopOrSuspend(p)
	case 14: // another user's command
		if w.chance(2) && p.rados.client != "" {
			w.ceph.blocklisted[p.rados.client] = true
		}
	}
}

// stopOrSuspend ends a process or makes it sleep for long, and its peers detect that.
func (w *Simulation) stopOrSuspend(p *process) {
	if !p.runs() {
		return
	}
	w.trouble[p.name] = w.now
	if w.chance(3) {
		w.crash(p)
	} else {
		p.frozen = true
		w.disconnect(p)
		w.now = w.now.Add(decide.SilentLimit)
	}
	for _, name := range w.names {
		w.checkPeers(w.running[name])
	}
}

// restore sets the ownership of a volume to an earlier one, as a backup does. The control plane starts again, and later epochs
// are known only from gateways' reports.
func (w *Simulation) restore() {
	volume := w.anyVolume()
	if volume == nil {
		return
	}
	var past []model.Ownership
	for _, c := range w.store.log {
		if v, ok := c.object.(*model.Volume); ok && v.Meta.UID == volume.Meta.UID {
			past = append(past, v.Status.Ownership)
		}
	}
	changed := copyOf(volume).(*model.Volume)
	// Every epoch and order was assigned by a change of the store.
	changed.Status.Ownership = pick(w, past).Restored(uint64(w.store.revision))
	changed.Status.MoveRequest = nil
	w.restored[volume.Meta.UID] = true
	w.store.put(changed)
	if inCeph(volume) {
		w.restoreClients()
	}
	w.leaders = nil
	for _, name := range w.names {
		w.disconnect(w.running[name])
		w.store.forget(recordKey("volume", volume.Meta.UID, w.running[name].ref.Number))
	}
	w.elect()
}

// user changes the desired state.
func (w *Simulation) user() {
	volume := w.anyVolume()
	g := w.gateway(pick(w, w.names))
	if volume == nil || g == nil || !w.chance(2) {
		return
	}
	switch w.random.IntN(10) {
	case 0, 1, 2:
		if !volume.Meta.Deleting() && volume.Status.Ownership.State != model.Unowned {
			v := copyOf(volume).(*model.Volume)
			v.Status.MoveRequest = &model.MoveRequest{Gateway: uint32(w.random.IntN(5)), Since: w.now}
			w.store.put(v)
		}
	case 3, 4:
		if !volume.Meta.Deleting() {
			v := copyOf(volume).(*model.Volume)
			v.Spec.SizeBytes += 1 << 20
			v.Meta.Generation++
			w.sizes[v.Meta.Name] = v.Spec.SizeBytes
			w.store.put(v)
		}
	case 5, 6, 7:
		changed := copyOf(g).(*model.Gateway)
		changed.Status.Drain = !changed.Status.Drain
		w.store.put(changed)
	case 8:
		w.remap(volume)
	case 9:
		if len(w.referrers(volume.Meta.Name)) == 0 || w.broken == NoReferences {
			w.deleteObject(volume)
		}
	}
}

func (w *Simulation) mappedBy(volume string) *model.Target {
	for _, t := range all[*model.Target](w) {
		if slices.ContainsFunc(t.Spec.Luns, func(l model.TargetLun) bool { return l.Volume == volume }) {
			return t
		}
	}
	return nil
}

// remap unmaps a LUN, or maps a volume that no target maps.
func (w *Simulation) remap(volume *model.Volume) {
	if t := w.mappedBy(volume.Meta.Name); t != nil {
		c := copyOf(t).(*model.Target)
		c.Spec.Luns = slices.DeleteFunc(slices.Clone(t.Spec.Luns),
			func(l model.TargetLun) bool { return l.Volume == volume.Meta.Name })
		w.store.put(c)
	} else if to, found := anyOf[*model.Target](w); found && !to.Meta.Deleting() && !volume.Meta.Deleting() {
		c := copyOf(to).(*model.Target)
		c.Spec.Luns = append(slices.Clone(c.Spec.Luns), model.TargetLun{ID: int32(w.store.revision % 16384),
			Volume: volume.Meta.Name})
		w.store.put(c)
	}
}
