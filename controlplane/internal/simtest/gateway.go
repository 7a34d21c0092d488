package simtest

import (
	"maps"
	"slices"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// process is one incarnation of a gateway.
type process struct {
	ref    model.GatewayRef
	name   string
	node   string
	alive  bool
	frozen bool
	// stream: it has a stream to the control plane. outbox has its reports that are not stored yet.
	stream bool
	outbox []model.VolumeReport
	units  map[string]*unit
	rados  rados
	// secrets are the keys of the replica that sent the secrets of hosts; nil: none were sent.
	secrets *keyring.Keyring
	// requests and their answers, which are also on the stream.
	requests, answers []request
}

// unit is a volume at a gateway.
type unit struct {
	received model.Ownership
	// serving in this epoch; 0: it does not serve.
	serving uint64
	// final is the last epoch in which it closed the volume or failed to open it.
	final uint64
	// yielded is the order for which it released the lock. It takes the lock again only for a newer one.
	yielded  uint64
	reported model.VolumeReport
	// open is the Ceph client by which the image is open. loading and loaded are the epochs for which reservations were requested
	// and received.
	open            string
	loading, loaded uint64
	// resumed: the gateway has its role from its saved state, and received no message about the volume since.
	resumed bool
}

// disk is the record beside a local volume's data, and its lock.
type disk struct {
	holder *process
	// recorded is the epoch of the record, and by the gateway that wrote it.
	recorded uint64
	by       model.GatewayRef
	// damaged marks the copies of the record that cannot be read.
	damaged [2]bool
}

func (p *process) runs() bool { return p.alive && !p.frozen }

func (p *process) unit(uid string) *unit {
	if p.units[uid] == nil {
		p.units[uid] = &unit{}
	}
	return p.units[uid]
}

// say puts a report on the stream, where it waits until the replica has stored it.
func (p *process) say(uid string, state model.ObservedState, epoch, order uint64) {
	u := p.unit(uid)
	u.reported = model.VolumeReport{UID: uid, Gateway: p.ref,
		VolumeObservation: model.VolumeObservation{Epoch: epoch, Order: order, State: state, AllocatedBytes: -1}}
	if p.stream {
		p.outbox = append(p.outbox, u.reported)
	}
}

// deliverOwnership delivers the stored ownership of a volume to a gateway; the caller determines the delay. A gateway ignores an
// order or an epoch that is older than one that it has received.
func (w *Simulation) deliverOwnership(p *process, volume *model.Volume) {
	if u := p.unit(volume.Meta.UID); volume.Status.Ownership.Order >= u.received.Order &&
		volume.Status.Ownership.Epoch >= u.received.Epoch {
		u.received, u.resumed = volume.Status.Ownership, false
	}
}

// roleOf returns the role that the control plane sends a gateway for a volume with this ownership.
func roleOf(o model.Ownership, self model.GatewayRef) pb.VolumeRole {
	role, _, _ := desired.RoleOf(&model.Volume{Status: model.VolumeStatus{Ownership: o}}, self)
	return role
}

// act is one step of a gateway for one volume.
func (w *Simulation) act(p *process, volume *model.Volume) {
	uid := volume.Meta.UID
	u := p.unit(uid)
	o := u.received
	switch role := roleOf(o, p.ref); {
	case !p.runs():
	case inCeph(volume):
		w.actInCeph(p, uid)
	case role == pb.VolumeRole_VOLUME_ROLE_RELEASING:
		if u.final < o.Epoch {
			w.close(p, uid)
			u.final = o.Epoch
		}
		w.repeat(p, uid, model.VolumeReleased, o.Epoch, o.Order)
	case role == pb.VolumeRole_VOLUME_ROLE_OWNER:
		w.open(p, volume, o)
	case role == pb.VolumeRole_VOLUME_ROLE_ACQUIRING:
		if u.reported.State == model.VolumeLocked && u.reported.Order == o.Order {
			return
		}
		if w.chance(8) && w.faulty || w.unopenable(volume) != "" {
			p.say(uid, model.VolumeFailed, o.Epoch, o.Order)
		} else if w.lock(p, uid, o.Order) {
			w.locked[lockKey{uid, p.ref, o.Order}] = true
			p.say(uid, model.VolumeLocked, o.Epoch, o.Order)
		}
	default:
		if u.serving != 0 {
			epoch := u.serving
			w.close(p, uid)
			u.final = epoch
			p.say(uid, model.VolumeFenced, epoch, o.Order)
		} else if w.disk(uid).holder == p {
			w.disk(uid).holder = nil
			u.reported = model.VolumeReport{}
		}
	}
}

// repeat reports something again only if it has changed.
func (w *Simulation) repeat(p *process, uid string, state model.ObservedState, epoch, order uint64) {
	if reported := p.unit(uid).reported; reported.State != state || reported.Epoch != epoch {
		p.say(uid, state, epoch, order)
	}
}

func (w *Simulation) open(p *process, volume *model.Volume, o model.Ownership) {
	uid := volume.Meta.UID
	u := p.unit(uid)
	recorded, by, readable := w.readRecord(w.disk(uid))
	final := u.final >= o.Epoch
	if w.broken == ReleaseIsNotFinal {
		final = false
	}
	switch {
	case u.serving == o.Epoch:
		w.repeat(p, uid, model.VolumeServing, o.Epoch, o.Order)
	case final:
		w.repeat(p, uid, model.VolumeReleased, o.Epoch, o.Order)
	case !w.lock(p, uid, o.Order):
	case !readable:
		w.close(p, uid)
		u.final = o.Epoch
		p.say(uid, model.VolumeFailed, o.Epoch, o.Order)
	case recorded > o.Epoch || recorded == o.Epoch && by != p.ref && !w.resumes(p, uid, by):
		w.close(p, uid) // RECORD_WINS: the received state is older than the record, whose epoch the gateway reports
		p.say(uid, model.VolumeFailed, recorded, o.Order)
	case w.faulty && w.chance(6) || w.unopenable(volume) != "":
		w.close(p, uid)
		u.final = o.Epoch
		p.say(uid, model.VolumeFailed, o.Epoch, o.Order)
	default:
		w.serve(p, uid, o)
	}
}

// serve writes the record as a whole, and then serves.
func (w *Simulation) serve(p *process, uid string, o model.Ownership) {
	d := w.disk(uid)
	if o.Epoch < d.recorded {
		w.violate("%s serves %s in epoch %d, and epoch %d is recorded beside its data", p.ref, uid, o.Epoch, d.recorded)
	}
	d.recorded, d.by, d.damaged = o.Epoch, p.ref, [2]bool{}
	p.unit(uid).serving = o.Epoch
	if p.unit(uid).resumed {
		w.identity.resumed[epochKey{uid, o.Epoch}] = true
	}
	w.checkServing(p, uid, o.Epoch)
	p.say(uid, model.VolumeServing, o.Epoch, o.Order)
}

// lock takes a volume's lock if its holder does not keep it: a dead holder's lock is free, a frozen holder is killed, and a
// running holder yields to an order that is not older than its own.
func (w *Simulation) lock(p *process, uid string, order uint64) bool {
	d := w.disk(uid)
	if p.unit(uid).yielded >= order {
		return false
	}
	h := d.holder
	if h == p {
		return true
	}
	if h != nil && h.alive && h.frozen {
		w.crash(h)
	}
	if h != nil && h.alive {
		u := h.unit(uid)
		if order < u.received.Order {
			return false
		}
		u.yielded = order
		epoch := u.serving
		w.close(h, uid)
		if epoch != 0 {
			u.final = epoch
			h.say(uid, model.VolumeFenced, epoch, u.received.Order)
		} else {
			u.reported = model.VolumeReport{} // it does not report again what it no longer has
		}
	}
	d.holder = p
	return true
}

func (w *Simulation) close(p *process, uid string) {
	p.unit(uid).serving = 0
	if d := w.disk(uid); d.holder == p {
		d.holder = nil
	}
}

func (w *Simulation) disk(uid string) *disk {
	if w.disks[uid] == nil {
		w.disks[uid] = &disk{}
	}
	return w.disks[uid]
}

func (w *Simulation) crash(p *process) {
	p.alive, p.frozen = false, false
	w.disconnect(p)
	for _, u := range p.units {
		u.serving, u.open = 0, ""
	}
	for _, d := range w.disks {
		if d.holder == p {
			d.holder = nil
		}
	}
}

// connect opens a stream and sends reports on the volumes that the gateway has.
func (w *Simulation) connect(p *process) {
	g := get[*model.Gateway](w.store, model.KindGateway, p.name)
	if g == nil || !p.runs() || w.cut[p.name] || w.store.replaced[p.ref.Incarnation] || !w.admitted(p) {
		return
	}
	p.stream, p.outbox, p.requests, p.answers = true, nil, nil, nil
	p.rados.recorded, p.rados.asked = false, false
	for _, q := range w.past[p.name] {
		if q != p {
			q.stream = false
			w.store.replaced[q.ref.Incarnation] = true
		}
	}
	w.store.record("connection/"+p.name, model.Observed{Connection: &model.GatewayConnection{Gateway: p.name, Ref: p.ref}})
	for _, uid := range slices.Sorted(maps.Keys(p.units)) {
		p.units[uid].loading = 0
		reported := p.units[uid].reported
		if reported.State != "" {
			p.outbox = append(p.outbox, reported)
		}
		if reported.State == model.VolumeLocked { // it still has the lock
			w.locked[lockKey{uid, p.ref, reported.Order}] = true
		}
	}
}

// forgetUnmapped drops a gateway's state of volumes that no target maps, because its desired state no longer contains them. A
// restored store may have an older state of them than the gateway.
func (w *Simulation) forgetUnmapped(p *process) {
	for _, v := range w.volumes() {
		u := p.units[v.Meta.UID]
		if u != nil && u.serving == 0 && w.disk(v.Meta.UID).holder != p && v.Status.Ownership.State == model.Unowned && w.mappedBy(v.Meta.Name) == nil {
			u.received = model.Ownership{}
		}
	}
}

// disconnect ends a stream. Reports on it that were not stored are lost.
func (w *Simulation) disconnect(p *process) {
	if p.stream {
		p.stream, p.outbox, p.requests, p.answers = false, nil, nil, nil
		w.store.forget("connection/" + p.name)
	}
}

// deliver stores the oldest report of a stream.
func (w *Simulation) deliver(p *process) {
	if p.stream && len(p.outbox) > 0 {
		r := p.outbox[0]
		p.outbox = p.outbox[1:]
		w.store.record(recordKey("volume", r.UID, p.ref.Number), model.Observed{Volume: &r})
	}
}

// checkPeers reports whether a gateway reaches the peers that it was sent.
func (w *Simulation) checkPeers(p *process) {
	if !p.runs() || !p.stream || w.gateway(p.name) == nil {
		return
	}
	peers := w.peersOf(p)
	for _, name := range w.names {
		q := w.running[name]
		if q == nil || w.gateway(name) == nil || !slices.Contains(peers, q.ref.Number) {
			continue
		}
		r := model.PeerReport{Reporter: p.ref, Peer: q.ref, Reach: model.PeerConnected}
		switch {
		case w.cutPeers[name] || w.cutPeers[p.name] || q.frozen:
			r.Reach, r.Silent = model.PeerSilent, min(w.now.Sub(w.trouble[name]), w.now.Sub(w.trouble[p.name])+1<<40)
		case !q.alive:
			r.Reach = model.PeerRefused
		}
		key := recordKey("peer", q.ref.Number, "/", p.ref.Number)
		if known, ok := w.store.records[key]; ok && *known.Peer == r {
			continue
		}
		w.store.record(key, model.Observed{Peer: &r})
	}
}

// peersOf returns the peers that the control plane sends a gateway, by number.
func (w *Simulation) peersOf(p *process) []uint32 {
	o := objects.New()
	for _, g := range all[*model.Gateway](w) {
		known := *g
		if w.broken == PathSetsOnly {
			known.Status.Health = model.GatewayReady
		}
		o.Put(&known)
	}
	for _, t := range all[*model.Target](w) {
		o.Put(t)
	}
	return o.PeersOf(w.gateway(p.name))
}
