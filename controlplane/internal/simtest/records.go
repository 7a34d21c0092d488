package simtest

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// damageRecord destroys one copy of a local volume's record, or both.
func (w *Simulation) damageRecord() {
	i := w.identity
	volumes := w.volumes()
	if len(volumes) == 0 {
		return
	}
	d := w.disk(volumes[i.random.IntN(len(volumes))].Meta.UID)
	if d.recorded == 0 {
		return
	}
	d.damaged[i.random.IntN(2)] = true
	if i.chance(4) {
		d.damaged = [2]bool{true, true}
	}
}

// readRecord returns the epoch of the record beside a volume's data, the gateway that wrote it, and whether the record can be
// read. One copy suffices.
func (w *Simulation) readRecord(d *disk) (uint64, model.GatewayRef, bool) {
	switch {
	case !slices.Contains(d.damaged[:], true):
		return d.recorded, d.by, true
	case w.broken == NoRecordCopy:
		return 0, model.GatewayRef{}, true
	default:
		return d.recorded, d.by, slices.Contains(d.damaged[:], false)
	}
}

// startFromOldState ends a gateway, waits until another one of its node owns its volumes, and ends all gateways of the node. Then
// the first gateway starts without the control plane and knows only its saved state. Random faults alone seldom lead to that.
func (w *Simulation) startFromOldState(first string) {
	p := w.running[first]
	if w.gateway(first) == nil || !p.alive {
		return
	}
	w.crash(p)
	w.trouble[first] = w.now
	faulty := w.faulty
	w.faulty = false
	for range takeoverRounds {
		w.stepAll(w.leaders[len(w.leaders)-1])
	}
	w.faulty = faulty
	for _, name := range w.names {
		if w.nodes[name] == p.node && w.running[name].alive {
			w.crash(w.running[name])
			w.trouble[name] = w.now
		}
	}
	if w.identity.chance(2) {
		w.damageRecord()
	}
	w.cut[first] = true
	w.start(first)
	for _, v := range w.volumes() {
		w.act(w.running[first], v)
	}
	delete(w.cut, first)
	w.connect(w.running[first])
}

// takeoverRounds are enough for the volumes of an ended gateway to find another owner.
const takeoverRounds = 20

// resume gives a starting gateway the volumes that, according to its former process's saved state, it owns. That state may be
// outdated (DESIGN R3); the next message about a volume replaces it. Volumes in Ceph are excluded, because the control plane
// first records the new client.
func (w *Simulation) resume(p, former *process) {
	if w.identity == nil || former == nil {
		return
	}
	for _, v := range w.volumes() {
		uid := v.Meta.UID
		u := former.units[uid]
		if inCeph(v) || u == nil {
			continue
		}
		if o := u.received; roleOf(o, former.ref) == pb.VolumeRole_VOLUME_ROLE_OWNER {
			o.Owner = p.ref
			p.units[uid] = &unit{received: o, resumed: true}
		}
	}
}

// resumes reports whether a gateway may continue in an epoch of its own former process, which has ended.
func (w *Simulation) resumes(p *process, uid string, former model.GatewayRef) bool {
	u := p.units[uid]
	if u == nil || !u.resumed || former.Number != p.ref.Number {
		return false
	}
	of := w.process(former)
	return of != nil && !of.alive
}

// wasResumed reports whether two processes of one gateway may each have owned a volume in an epoch, one after the other.
func (w *Simulation) wasResumed(key epochKey, former, next model.GatewayRef) bool {
	return w.identity != nil && w.identity.resumed[key] && former.Number == next.Number
}
