package simtest

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// cephPool is the pool in Ceph, which all gateways reach.
const cephPool = "ceph"

// cluster is the state of Ceph.
type cluster struct {
	// blocklisted clients. No entry is removed.
	blocklisted map[string]bool
	// locks of images, by the volume's uid.
	locks map[string]imageLock
	// parents are the images whose blocks a clone shares, by the clone's location.
	parents map[string]string
	// written is the newest epoch in which data was written, by the volume's uid.
	written map[string]uint64
}

// imageLock is an image's exclusive lock, which remains after its client's death.
type imageLock struct {
	by     *process
	client string
}

func newCluster() *cluster {
	return &cluster{blocklisted: map[string]bool{}, locks: map[string]imageLock{}, parents: map[string]string{},
		written: map[string]uint64{}}
}

func inCeph(v *model.Volume) bool { return v.Spec.Pool == cephPool }

// rados is a gateway's client of Ceph.
type rados struct {
	// client that is connected; empty: none.
	client string
	// recorded: the answer was received over this stream. asked: a request is in progress.
	recorded, asked bool
	// used are all clients by which it has ever opened an image.
	used []string
}

// request is a request to the control plane, and its answer: to record a client, or, if there is a volume, to load its
// reservations in an epoch.
type request struct {
	client string
	uid    string
	epoch  uint64
	err    error
	// unknown: the store did not answer.
	unknown bool
}

// stepsInCeph returns the steps in Ceph for each step: a record changes between a decision and its storing only if gateways are
// fast.
func (w *Simulation) stepsInCeph() int {
	if w.broken == NoRecordGuard {
		return 6
	}
	return 1
}

// stepInCeph makes one event happen between a gateway and Ceph, or one of the gateway's requests for it.
func (w *Simulation) stepInCeph(p *process) {
	switch w.random.IntN(7) {
	case 0:
		w.connectClient(p)
	case 1:
		w.answer(p)
	case 2:
		w.listen(p)
	case 3, 4:
		if v := w.anyVolume(); v != nil && inCeph(v) {
			w.act(p, v)
		}
	case 5:
		w.write(p)
	case 6:
		if p.frozen && w.chance(24) { // it continues where it was
			p.frozen = false
			w.connect(p)
		}
	}
}

// connectClient makes a gateway connect a client and request that it is recorded.
func (w *Simulation) connectClient(p *process) {
	if !p.runs() {
		return
	}
	if p.rados.client == "" {
		w.counter++
		p.rados.client = recordKey("client", w.counter)
	}
	if w.blocklisted(p) && (w.chance(4) || !w.faulty) {
		w.handleBlocklisting(p) // it checks its pools from time to time, but nothing else while it serves nothing
		return
	}
	if !p.rados.recorded && !p.rados.asked && p.stream {
		p.rados.asked = true
		p.requests = append(p.requests, request{client: p.rados.client})
	}
}

// answer makes the store handle the oldest request of a stream.
func (w *Simulation) answer(p *process) {
	if !p.stream || len(p.requests) == 0 {
		return
	}
	r := p.requests[0]
	p.requests = p.requests[1:]
	if w.faulty && w.chance(8) {
		r.unknown = true
	}
	switch {
	case r.unknown && w.chance(2): // the request was lost
	case r.uid == "":
		r.err = w.store.recordClient(p.ref, r.client)
	default:
		if v := w.volumeByUID(r.uid); v == nil || v.Status.Ownership.Epoch != r.epoch {
			r.err = model.ErrFenced
		}
	}
	p.answers = append(p.answers, r)
}

func (w *Simulation) volumeByUID(uid string) *model.Volume {
	return w.volume(uid[:len(uid)-len("-uid")])
}

// listen handles the oldest answer.
func (w *Simulation) listen(p *process) {
	if !p.runs() || len(p.answers) == 0 {
		return
	}
	r := p.answers[0]
	p.answers = p.answers[1:]
	if r.uid == "" {
		if r.client == p.rados.client {
			w.listenOfRecord(p, r)
		}
		return
	}
	u := p.unit(r.uid)
	if u.loading = 0; r.unknown || r.client != p.rados.client || r.epoch != u.received.Epoch {
		return
	}
	if u.loaded = r.epoch; r.err != nil {
		w.shut(p, r.uid)
		u.final = r.epoch
		p.say(r.uid, model.VolumeFenced, r.epoch, u.received.Order)
	}
}

func (w *Simulation) listenOfRecord(p *process, r request) {
	p.rados.asked = false
	switch {
	case r.unknown:
	case r.err == model.ErrTooManyClients:
		w.start(p.name)
	case r.err != nil:
		w.handleBlocklisting(p)
	default:
		p.rados.recorded = true
	}
}

// actInCeph is one step of a gateway for one volume in Ceph.
func (w *Simulation) actInCeph(p *process, uid string) {
	u := p.unit(uid)
	o := u.received
	role := roleOf(o, p.ref)
	owner, releasing := role == pb.VolumeRole_VOLUME_ROLE_OWNER, role == pb.VolumeRole_VOLUME_ROLE_RELEASING
	switch {
	case u.open != "" && !(owner && u.serving == o.Epoch) && w.blocklisted(p):
		w.handleBlocklisting(p)
	case u.serving != 0 && (u.serving != o.Epoch || !owner && !releasing): // a newer epoch fences it
		epoch := u.serving
		w.shut(p, uid)
		u.final = epoch
		p.say(uid, model.VolumeFenced, epoch, o.Order)
	case releasing:
		w.shut(p, uid)
		u.final = max(u.final, o.Epoch)
		w.repeat(p, uid, model.VolumeReleased, o.Epoch, o.Order)
	case !owner:
		w.shut(p, uid)
	case u.final >= o.Epoch && w.broken != ReleaseIsNotFinal:
		w.repeat(p, uid, model.VolumeReleased, o.Epoch, o.Order)
	case u.serving != 0:
		w.repeat(p, uid, model.VolumeServing, o.Epoch, o.Order)
	default:
		w.openAndServe(p, uid, o)
	}
}

// openAndServe follows the gateway's protocol: a recorded client opens the image, and the volume is served after a load in the
// present epoch.
func (w *Simulation) openAndServe(p *process, uid string, o model.Ownership) {
	u := p.unit(uid)
	switch {
	case p.rados.client == "" || !p.rados.recorded && w.broken != NoRecord:
	case u.open == "":
		w.openImage(p, uid, o)
	case u.loaded != o.Epoch && w.broken != NoLoad:
		if u.loading != o.Epoch && p.stream {
			u.loading = o.Epoch
			p.requests = append(p.requests, request{client: p.rados.client, uid: uid, epoch: o.Epoch})
		}
	default:
		u.serving = o.Epoch
		w.checkServing(p, uid, o.Epoch)
		w.checkServingInCeph(p, uid, o.Epoch)
		p.say(uid, model.VolumeServing, o.Epoch, o.Order)
	}
}

// openImage opens the image and takes its lock. No client hands that over, but a gone client is blocklisted, and then has none.
func (w *Simulation) openImage(p *process, uid string, o model.Ownership) {
	u, held := p.unit(uid), w.ceph.locks[uid]
	gone := held.by != nil && (!held.by.alive || held.by.frozen && w.chance(2))
	v := w.volumeByUID(uid)
	switch {
	case w.blocklisted(p):
		w.handleBlocklisting(p)
	case v == nil || w.images[model.VolumeLocation(v)] == 0:
	case held.by != nil && held.client != p.rados.client && !w.ceph.blocklisted[held.client] && !gone,
		w.faulty && w.chance(6):
		u.final = o.Epoch
		p.say(uid, model.VolumeFailed, o.Epoch, o.Order)
	default:
		if held.by != nil && held.client != p.rados.client {
			w.ceph.blocklisted[held.client] = true
		}
		w.ceph.locks[uid] = imageLock{p, p.rados.client}
		u.open, u.loaded = p.rados.client, 0
		if !slices.Contains(p.rados.used, u.open) {
			p.rados.used = append(p.rados.used, u.open)
		}
	}
}

func (w *Simulation) blocklisted(p *process) bool { return w.ceph.blocklisted[p.rados.client] }

// shut closes an image.
func (w *Simulation) shut(p *process, uid string) {
	u := p.unit(uid)
	if u.open != "" && w.ceph.locks[uid].client == u.open && !w.ceph.blocklisted[u.open] {
		delete(w.ceph.locks, uid)
	}
	u.serving, u.open, u.loaded = 0, "", 0
}

// handleBlocklisting handles a gateway's discovery that its client is blocklisted: it no longer answers commands of images that the
// client has open, and returns with another client (R4).
func (w *Simulation) handleBlocklisting(p *process) {
	for _, v := range w.volumes() {
		uid := v.Meta.UID
		u := p.units[uid]
		if u == nil || u.open == "" {
			continue
		}
		epoch := u.serving
		if w.shut(p, uid); epoch != 0 {
			u.final = epoch
			p.say(uid, model.VolumeFenced, epoch, u.received.Order)
		}
	}
	p.rados.client, p.rados.recorded, p.rados.asked = "", false, false
}

// write is a command of a host to every volume that a gateway serves in Ceph. A blocklisted gateway discovers that now.
func (w *Simulation) write(p *process) {
	if !p.runs() {
		return
	}
	for _, v := range w.volumes() {
		u := p.units[v.Meta.UID]
		switch {
		case u == nil || u.serving == 0 || !inCeph(v):
		case w.blocklisted(p):
			w.handleBlocklisting(p)
			return
		default:
			w.checkWrite(p, v)
		}
	}
}

// mayWrite reports whether Ceph executes a gateway's writes to a volume.
func (w *Simulation) mayWrite(p *process, v *model.Volume) bool {
	u := p.units[v.Meta.UID]
	return u != nil && p.alive && u.serving != 0 && !w.ceph.blocklisted[u.open]
}

// writer returns another process that can write to a volume; nil: none.
func (w *Simulation) writer(v *model.Volume, but *process) *process {
	for _, name := range w.names {
		for _, p := range w.past[name] {
			if p != but && w.mayWrite(p, v) {
				return p
			}
		}
	}
	return nil
}
