package simtest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// Rule is a rule that a run can break, to see that the invariants detect it.
type Rule int

// The rules.
const (
	// Whole: no rule is broken.
	Whole Rule = iota
	// NoCompareAndSwap stores a change of ownership regardless of the stored one.
	NoCompareAndSwap
	// NoLock begins a local volume's epoch before its candidate has the lock.
	NoLock
	// NoIncarnation treats a restarted gateway as the same incarnation.
	NoIncarnation
	// NoOrder treats an old report as the answer to the present order.
	NoOrder
	// NoEpoch treats a report of an earlier epoch as one of the present epoch.
	NoEpoch
	// ReleaseIsNotFinal lets a gateway serve again in an epoch in which it had closed the volume.
	ReleaseIsNotFinal
	// NoPeers declares a gateway dead merely because its stream ended.
	NoPeers
	// AnyoneSnapshots lets a gateway take a snapshot of a volume although it knows that another gateway owns it.
	AnyoneSnapshots
	// NoReferences lets users delete objects to which others refer: a volume that has snapshots or is exported.
	NoReferences
	// NoJobGuard assigns jobs for deleted objects, and removes objects that have jobs.
	NoJobGuard
	// NoFinalizer removes a gateway as soon as its deletion is requested.
	NoFinalizer
	// NoRecordGuard treats a gateway as fenced by a record of its clients that has changed meanwhile.
	NoRecordGuard
	// NoFence treats a fence as done when its job is assigned.
	NoFence
	// NoRecord lets a gateway open images with a client that is not recorded yet.
	NoRecord
	// NoLoad lets a gateway serve a volume in Ceph before it has loaded the reservations in the present epoch.
	NoLoad
	// UnknownIsFenced treats a gateway without known clients as fenced.
	UnknownIsFenced
	// PathSetsOnly makes only gateways that share a path set with a gateway its peers.
	PathSetsOnly
	// NoMarker makes gateways use any storage at the path of a local pool.
	NoMarker
	// NoImageRecord makes gateways open an image without comparing it with its record.
	NoImageRecord
	// NoImageSize makes gateways open an image that is smaller than its record.
	NoImageSize
	// NoSystem makes gateways follow any store.
	NoSystem
	// NoRecordCopy makes gateways treat a record as absent if one of its copies is damaged.
	NoRecordCopy
	// NoKeyCheck lets a replica serve although its key file is not the store's.
	NoKeyCheck
)

// Simulation is a cluster with random events, in an order that its seed determines.
type Simulation struct {
	random *rand.Rand
	now    time.Time
	broken Rule
	// faulty: faults occur.
	faulty bool

	store   *memory
	leaders []*leader
	names   []string
	nodes   map[string]string
	running map[string]*process
	past    map[string][]*process
	disks   map[string]*disk
	images  map[string]int64
	ceph    *cluster
	// cut are the gateways that are disconnected from the control plane, cutPeers those disconnected from other gateways; trouble
	// has the time at which a gateway last got into trouble.
	cut, cutPeers map[string]bool
	trouble       map[string]time.Time

	locked map[lockKey]bool
	served map[epochKey]model.GatewayRef
	owners map[epochKey]model.GatewayRef
	sizes  map[string]int64
	// restored are the volumes whose ownership was restored from a backup, by uid.
	restored map[string]bool
	// lost are the volumes that were taken from an owner that was gone with its node, by uid.
	lost map[string]bool
	// removed has the place in the log since which a gateway is removed, by number.
	removed map[uint32]int
	// over is the last epoch of a volume in Ceph in which no gateway can write any more, by uid; fences counts the fences of a
	// client.
	over   map[string]uint64
	fences map[string]int
	// kept are images that stay without their volumes, by location.
	kept    map[string]bool
	found   []string
	counter int
	// identity is nil in most runs.
	identity *identity
	// made counts the volumes, snapshots and targets that were ever made, so that no name is reused.
	made int
}

type lockKey struct {
	uid   string
	by    model.GatewayRef
	order uint64
}

type epochKey struct {
	uid   string
	epoch uint64
}

// leader is a replica that believes that it leads. It receives changes and stores decisions with any delay.
type leader struct {
	view    *decide.LeaderView
	logRead int
	// clientsRead is the same for the records of clients, which another watch reports.
	clientsRead int
	pending     []step
	// keys of the replica's key file.
	keys *keyring.Keyring
}

type step struct {
	actions []decide.Action
	// logRead is the part of the log on which it was decided.
	logRead int
}

// New returns a cluster of two nodes with two gateways each, a local pool on each node and one in Ceph, five volumes and two
// targets.
func New(seed uint64, broken Rule) *Simulation {
	w := &Simulation{random: rand.New(rand.NewPCG(seed, 1)), broken: broken, faulty: true,
		now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), store: newMemory(),
		nodes: map[string]string{}, running: map[string]*process{}, past: map[string][]*process{},
		disks: map[string]*disk{}, images: map[string]int64{}, cut: map[string]bool{}, cutPeers: map[string]bool{},
		trouble: map[string]time.Time{}, locked: map[lockKey]bool{}, served: map[epochKey]model.GatewayRef{},
		owners: map[epochKey]model.GatewayRef{}, sizes: map[string]int64{}, restored: map[string]bool{}, lost: map[string]bool{},
		removed: map[uint32]int{}, over: map[string]uint64{}, fences: map[string]int{}, kept: map[string]bool{},
		ceph: newCluster(), made: 5, identity: newIdentity(seed, broken)}
	w.store.put(&model.Fabric{Meta: model.Meta{Name: "red", UID: "red"}})
	for i := range 4 {
		name, node := fmt.Sprintf("gw-%d", i+1), fmt.Sprintf("node-%d", i/2+1)
		w.names = append(w.names, name)
		w.nodes[name] = node
		w.store.put(&model.Gateway{Meta: model.Meta{Name: name, UID: name}, Spec: model.GatewaySpec{
			GatewayPool: "default", Node: node, Weight: 100,
			Portals: []model.Portal{{Fabric: "red", Advertised: fmt.Sprintf("192.0.2.%d:3260", i+1)}}},
			Status: model.GatewayStatus{Number: uint32(i + 1), Health: model.GatewayNew,
				PortalGroupTags: map[string]uint32{"red": uint32(i + 1)}}})
	}
	for i := range 2 {
		name := fmt.Sprintf("pool-%d", i+1)
		w.store.put(&model.StoragePool{Meta: model.Meta{Name: name, UID: name}, Spec: model.StoragePoolSpec{
			Local: &model.LocalPool{Node: fmt.Sprintf("node-%d", i+1), Directory: "/srv"}, WarnPercent: 85}})
	}
	w.store.put(&model.StoragePool{Meta: model.Meta{Name: cephPool, UID: cephPool},
		Spec: model.StoragePoolSpec{RBD: &model.RBDPool{Pool: "rbd"}, WarnPercent: 85}})
	for i, pool := range []string{"pool-1", "pool-1", noReflink, cephPool, cephPool} {
		w.makeVolume(fmt.Sprintf("v-%d", i+1), pool, 1<<30, model.VolumeSource{})
	}
	w.makeTarget("t-1", "v-1", "v-3", "v-4")
	w.makeTarget("t-2", "v-2", "v-5")
	for _, name := range w.names {
		w.start(name)
	}
	w.elect()
	w.begin()
	return w
}

func (w *Simulation) chance(in int) bool { return w.random.IntN(in) == 0 }

func pick[T any](w *Simulation, from []T) T { return from[w.random.IntN(len(from))] }

func (w *Simulation) start(name string) {
	if w.gateway(name) == nil {
		return // a removed gateway is not started
	}
	if old := w.running[name]; old != nil && old.alive {
		w.crash(old)
	}
	p := w.newProcess(name)
	w.resume(p, w.running[name])
	w.running[name] = p
	w.past[name] = append(w.past[name], p)
	w.trouble[name] = w.now
	w.connect(p)
}

func (w *Simulation) newProcess(name string) *process {
	w.counter++
	number := uint32(slices.Index(w.names, name) + 1)
	return &process{name: name, node: w.nodes[name], alive: true, units: map[string]*unit{},
		ref: model.GatewayRef{Number: number, Incarnation: fmt.Sprintf("%s.%d", name, w.counter)}}
}

// elect begins a new leader's term. Earlier leaders may not have learned that.
func (w *Simulation) elect() {
	w.store.revision++
	l := &leader{view: decide.NewLeaderView(w.store.revision, w.now), logRead: len(w.store.log),
		clientsRead: len(w.store.clientLog), keys: systemKeys()}
	w.store.applyAll(l.view, w.now, w.rewrite)
	l.view.Observe(w.use(), w.now)
	w.leaders = append(w.leaders, l)
	w.leaders = w.leaders[max(0, len(w.leaders)-2):]
}

// use returns a load report in which hosts use every other volume. Volumes that no host uses wait for these.
func (w *Simulation) use() model.Observed {
	report := &model.LoadReport{At: w.now}
	for i, volume := range w.volumes() {
		report.Volumes = append(report.Volumes, model.VolumeLoad{UID: volume.Meta.UID, Bytes: uint64(i % 2)})
	}
	return model.Observed{Load: report}
}

// rewrite returns a record as a leader with a broken rule sees it.
func (w *Simulation) rewrite(o model.Observed) model.Observed {
	if o.Peer != nil && w.broken == NoPeers {
		r := *o.Peer
		r.Reach = model.PeerRefused
		o.Peer = &r
	}
	if o.Connection != nil && w.broken == NoIncarnation {
		c := *o.Connection
		c.Ref = w.past[c.Gateway][0].ref
		o.Connection = &c
	}
	if o.Volume == nil {
		return o
	}
	r := *o.Volume
	for _, object := range w.store.objects {
		volume, ok := object.(*model.Volume)
		if !ok || volume.Meta.UID != r.UID {
			continue
		}
		ownership := volume.Status.Ownership
		switch w.broken {
		case NoOrder:
			r.Order = ownership.Order
		case NoEpoch:
			r.Epoch = ownership.Epoch
		}
	}
	o.Volume = &r
	return o
}

func (l *leader) listen(w *Simulation, to int) {
	w.store.applyLog(l.view, l.logRead, to, w.now, w.rewrite)
	l.logRead = to
	if w.broken == UnknownIsFenced {
		w.inventClients(l)
	}
	if w.broken == NoOrder || w.broken == NoEpoch {
		for _, key := range slices.Sorted(maps.Keys(w.store.records)) {
			if r := w.store.records[key]; r.Volume != nil { // any report is treated as an answer to the present order
				l.view.Observe(w.rewrite(r), w.now)
			}
		}
	}
}

// inventClients makes a leader treat unknown clients as fenced.
func (w *Simulation) inventClients(l *leader) {
	for _, v := range w.volumes() {
		fence := v.Status.Ownership.Fence
		if inCeph(v) && !fence.IsZero() && w.store.clients[fence] == nil {
			l.view.PutRadosClients(&model.RadosClients{PoolUID: cephPool, Gateway: fence, Version: w.store.revision})
		}
	}
}

func (l *leader) listenOfClients(w *Simulation, to int) {
	w.store.tellClients(l.view, l.clientsRead, to)
	l.clientsRead = to
}

func (l *leader) decide(w *Simulation, key decide.Key) {
	if decision := l.view.Decide(key, w.now); len(decision.Actions) > 0 {
		l.pending = append(l.pending, step{decision.Actions, l.logRead})
	}
}

func (l *leader) plan() { l.view.TakePlan(placement.Plan(l.view.Cluster())) }

// carryOut stores the decision at a place in the queue, action by action, until one cannot be stored. Unlike the real leader, it
// learns of its own writes only from the watch.
func (l *leader) carryOut(w *Simulation, at int) {
	s := l.pending[at]
	l.pending = slices.Delete(l.pending, at, at+1)
	for _, a := range s.actions {
		stored, err := decide.Execute(context.Background(), &term{w, a, l, s.logRead}, a)
		if err != nil {
			return
		}
		if of := a.About(); stored.Changed && of.Done != nil {
			of.Done(l.view, w.now)
		}
	}
}

// Step makes one random event happen, and one between a gateway and Ceph.
func (w *Simulation) Step() {
	w.stepOfIdentity()
	for range w.stepsInCeph() {
		w.stepInCeph(w.running[pick(w, w.names)])
	}
	p := w.running[pick(w, w.names)]
	l := pick(w, w.leaders)
	switch w.random.IntN(27) {
	case 0:
		w.now = w.now.Add(time.Duration(w.random.IntN(800)) * time.Millisecond)
	case 1, 2, 3:
		l.listen(w, l.logRead+w.random.IntN(len(w.store.log)-l.logRead+1))
		if w.chance(3) {
			l.listenOfClients(w, l.clientsRead+w.random.IntN(len(w.store.clientLog)-l.clientsRead+1))
		}
	case 4, 5, 6:
		if keys := l.view.Everything(); len(keys) > 0 {
			l.decide(w, pick(w, keys))
			if w.chance(2) {
				l.decide(w, decide.Key{Kind: model.KindStoragePool, Name: cephPool})
			} else {
				l.decide(w, pick(w, keys))
			}
		}
	case 7, 8, 9, 10:
		for range min(2, len(l.pending)) {
			l.carryOut(w, w.random.IntN(len(l.pending)))
		}
	case 11:
		l.plan()
	case 12, 13:
		if p.runs() && p.stream {
			w.deliverAll(p)
		}
	case 14, 15, 16:
		if volume := w.anyVolume(); volume != nil {
			w.act(p, volume)
		}
	case 17, 18, 19:
		w.deliver(p)
	case 20:
		w.checkPeers(p)
	case 21:
		w.work(p)
	case 22:
		if w.broken != NoEpoch { // this rule is detected only by moves to and fro, which faults prevent
			w.fault(p)
		}
	case 23:
		w.user()
	case 24, 25:
		w.userOfCopies()
	case 26:
		w.userOfCeph()
	}
}
