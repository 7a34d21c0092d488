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
	// stream to the control plane; what it has said and has not been stored yet.
	stream bool
	outbox []model.VolumeReport
	units  map[string]*unit
	rados  rados
	// secrets of hosts came from a replica that decrypts with these keys; nil: none came.
	secrets *keyring.Keyring
	// requests and their answers are on the stream, too.
	requests, answers []request
}

// unit is a volume at a gateway.
type unit struct {
	heard model.Ownership
	// serving in this epoch, 0: not.
	serving uint64
	// final is the last epoch in which it closed the volume, or failed to open it.
	final uint64
	// yielded the lock to an order: it takes the lock again only for a newer one.
	yielded uint64
	told    model.VolumeReport
	// open by this client of Ceph; loading and loaded are the epochs in which its reservations were asked for, and told.
	open            string
	loading, loaded uint64
	// resumed: the gateway has its role from the state that it had saved; no message about the volume came since.
	resumed bool
}

// disk is what lies beside a local volume's data, and its lock.
type disk struct {
	holder *process
	// recorded is the epoch of the record, by the gateway that wrote it.
	recorded uint64
	by       model.GatewayRef
	// damaged says which of the two copies of the record cannot be read.
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
	u.told = model.VolumeReport{UID: uid, Gateway: p.ref,
		VolumeObservation: model.VolumeObservation{Epoch: epoch, Order: order, State: state, AllocatedBytes: -1}}
	if p.stream {
		p.outbox = append(p.outbox, u.told)
	}
}

// hear takes up the ownership of a volume as it is stored now; how long that takes is up to who calls. An order that is older than
// one that it has heard is refused, and so is one of an older epoch.
func (w *World) hear(p *process, volume *model.Volume) {
	if u := p.unit(volume.Meta.UID); volume.Status.Ownership.Order >= u.heard.Order &&
		volume.Status.Ownership.Epoch >= u.heard.Epoch {
		u.heard, u.resumed = volume.Status.Ownership, false
	}
}

// roleOf is the role that the control plane sends a gateway for a volume with this ownership.
func roleOf(o model.Ownership, self model.GatewayRef) pb.VolumeRole {
	role, _, _ := desired.RoleOf(&model.Volume{Status: model.VolumeStatus{Ownership: o}}, self)
	return role
}

// act is one step of a gateway for one volume.
func (w *World) act(p *process, volume *model.Volume) {
	uid := volume.Meta.UID
	u := p.unit(uid)
	o := u.heard
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
		if u.told.State == model.VolumeLocked && u.told.Order == o.Order {
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
			u.told = model.VolumeReport{}
		}
	}
}

// repeat says something again only where it is news.
func (w *World) repeat(p *process, uid string, state model.ObservedState, epoch, order uint64) {
	if told := p.unit(uid).told; told.State != state || told.Epoch != epoch {
		p.say(uid, state, epoch, order)
	}
}

func (w *World) open(p *process, volume *model.Volume, o model.Ownership) {
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
		w.close(p, uid) // RECORD_WINS: what the gateway was told is older than the record, whose epoch it reports
		p.say(uid, model.VolumeFailed, recorded, o.Order)
	case w.faulty && w.chance(6) || w.unopenable(volume) != "":
		w.close(p, uid)
		u.final = o.Epoch
		p.say(uid, model.VolumeFailed, o.Epoch, o.Order)
	default:
		w.serve(p, uid, o)
	}
}

// serve writes the record, whole, then serves.
func (w *World) serve(p *process, uid string, o model.Ownership) {
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

// lock takes a volume's lock, if nobody holds it who may keep it: a dead holder's is free, a frozen one is killed, and one
// that runs yields to an order that is not older than its own.
func (w *World) lock(p *process, uid string, order uint64) bool {
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
		if order < u.heard.Order {
			return false
		}
		u.yielded = order
		epoch := u.serving
		w.close(h, uid)
		if epoch != 0 {
			u.final = epoch
			h.say(uid, model.VolumeFenced, epoch, u.heard.Order)
		} else {
			u.told = model.VolumeReport{} // what it holds no more it does not tell again
		}
	}
	d.holder = p
	return true
}

func (w *World) close(p *process, uid string) {
	p.unit(uid).serving = 0
	if d := w.disk(uid); d.holder == p {
		d.holder = nil
	}
}

func (w *World) disk(uid string) *disk {
	if w.disks[uid] == nil {
		w.disks[uid] = &disk{}
	}
	return w.disks[uid]
}

func (w *World) crash(p *process) {
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

// connect opens a stream: the volumes it has follow, as they are now.
func (w *World) connect(p *process) {
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
		told := p.units[uid].told
		if told.State != "" {
			p.outbox = append(p.outbox, told)
		}
		if told.State == model.VolumeLocked { // it holds the lock still
			w.locked[lockKey{uid, p.ref, told.Order}] = true
		}
	}
}

// forgetUnmapped drops what a gateway has heard of volumes that no target maps, as its desired state no longer contains them. A store
// that was restored may hold an older state of them than the gateway has heard.
func (w *World) forgetUnmapped(p *process) {
	for _, v := range w.volumes() {
		u := p.units[v.Meta.UID]
		if u != nil && u.serving == 0 && w.disk(v.Meta.UID).holder != p && v.Status.Ownership.State == model.Unowned && w.mappedBy(v.Meta.Name) == nil {
			u.heard = model.Ownership{}
		}
	}
}

// disconnect ends a stream; what was on it and not stored is lost.
func (w *World) disconnect(p *process) {
	if p.stream {
		p.stream, p.outbox, p.requests, p.answers = false, nil, nil, nil
		w.store.forget("connection/" + p.name)
	}
}

// deliver stores the oldest report of a stream.
func (w *World) deliver(p *process) {
	if p.stream && len(p.outbox) > 0 {
		r := p.outbox[0]
		p.outbox = p.outbox[1:]
		w.store.record(recordKey("volume", r.UID, p.ref.Number), model.Observed{Volume: &r})
	}
}

// lookAtPeers reports how a gateway finds those that it is told of.
func (w *World) lookAtPeers(p *process) {
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

// peersOf are those that the control plane tells a gateway of, by number.
func (w *World) peersOf(p *process) []uint32 {
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
