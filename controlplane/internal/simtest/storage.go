package simtest

import (
	"math/rand/v2"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// identity is used in a share of the runs, in which something differs from its record: a mount is missing, an image is another
// file, a record is damaged, a store is empty, a gateway has two processes, a replica has another key file. It has separate
// random numbers, so that the other runs do not depend on it.
type identity struct {
	random *rand.Rand
	// pools are the local pools, by uid.
	pools map[string]*poolStorage
	// replaced has the locations at which another file has replaced the recorded image.
	replaced map[string]bool
	// truncated has the locations of images that lost their end.
	truncated map[string]bool
	// systems maps the name of each gateway to its system.
	systems map[string]string
	// resumed are the epochs in which a gateway continued after a restart.
	resumed map[epochKey]bool
}

// poolStorage is the storage at the path of a local pool.
type poolStorage struct {
	// marker of the pool's storage; empty: none yet.
	marker string
	// away: the storage is not mounted. Files that gateways then make lie below its mount point.
	away  bool
	below map[string]bool
}

// system of the store that a world begins with.
const firstSystem = "first"

// identityShare and identitySeed select the seeds: those with seed % identityShare == identitySeed.
const identityShare, identitySeed = 5, 3

func newIdentity(seed uint64, broken Rule) *identity {
	chosen := broken == Whole && seed%identityShare == identitySeed
	if !chosen && !slices.Contains([]Rule{NoMarker, NoImageRecord, NoImageSize, NoSystem, NoRecordCopy, NoKeyCheck}, broken) {
		return nil
	}
	return &identity{random: rand.New(rand.NewPCG(seed, 2)), pools: map[string]*poolStorage{"pool-1": {below: map[string]bool{}},
		noReflink: {below: map[string]bool{}}}, replaced: map[string]bool{}, truncated: map[string]bool{},
		systems: map[string]string{}, resumed: map[epochKey]bool{}}
}

func (i *identity) chance(in int) bool { return i.random.IntN(in) == 0 }

// begin makes every volume served before faults begin, because a run with faults from the start seldom serves anything.
func (w *Simulation) begin() {
	if w.identity == nil {
		return
	}
	w.faulty = false
	for range beginRounds {
		w.stepAll(w.leaders[0])
	}
	if w.identity.chance(2) {
		w.upgrade()
	}
	w.faulty = true
}

// upgrade turns the system into one of a release before markers, and replaces all gateways.
func (w *Simulation) upgrade() {
	for _, name := range w.names {
		w.store.forget(recordKey("pool", w.running[name].pool(), w.running[name].ref.Number))
		w.start(name)
	}
	for _, uid := range []string{"pool-1", noReflink} {
		w.identity.pools[uid].marker = ""
		pool := copyOf(get[*model.StoragePool](w.store, model.KindStoragePool, uid)).(*model.StoragePool)
		pool.Status.Marker = ""
		w.store.put(pool)
	}
}

// pool returns the pool of a gateway's node.
func (p *process) pool() string { return "pool-" + p.node[len("node-"):] }

// beginRounds are enough for volumes to be made and to find owners.
const beginRounds = 20

// stepOfIdentity makes one of these events happen.
func (w *Simulation) stepOfIdentity() {
	i := w.identity
	if i == nil {
		return
	}
	if name := w.names[i.random.IntN(len(w.names))]; i.chance(4) {
		w.reportPool(w.running[name])
	}
	if i.chance(120) { // replaced storage is soon restored
		w.putBack()
	}
	switch i.random.IntN(600) {
	case 0, 1, 2, 3:
		uid := []string{"pool-1", noReflink}[i.random.IntN(2)]
		i.pools[uid].away = w.isKnown(uid)
	case 4, 5, 6, 7, 8, 9:
		w.damageImage(i.replaced)
	case 10:
		w.emptyStore()
	case 11, 12:
		w.duplicate(w.names[i.random.IntN(len(w.names))])
	case 13, 14, 15, 16, 17, 18:
		w.damageRecord()
	case 19:
		w.startReplicaWithOtherKeys()
	case 20, 21, 22:
		w.startFromOldState(w.names[i.random.IntN(len(w.names))])
	case 23, 24, 25, 26, 27, 28:
		w.damageImage(i.truncated)
	}
}

// damageImage enters the image of a random volume, if it has one, in a list of damaged images.
func (w *Simulation) damageImage(damaged map[string]bool) {
	if volumes := w.volumes(); len(volumes) > 0 {
		location := model.VolumeLocation(volumes[w.identity.random.IntN(len(volumes))])
		damaged[location] = w.images[location] != 0
	}
}

// duplicate starts a second process of a gateway, which replaces the first one. The first one ends once it learns that.
func (w *Simulation) duplicate(name string) {
	old := w.running[name]
	if !old.runs() || w.gateway(name) == nil {
		return
	}
	p := w.newProcess(name)
	w.past[name] = append(w.past[name], p)
	if w.connect(p); !p.stream { // it was not admitted, and ends
		p.alive = false
		return
	}
	w.running[name] = p
	w.trouble[name] = w.now
}

// endReplaced ends the replaced processes.
func (w *Simulation) endReplaced() {
	for _, name := range w.names {
		for _, p := range w.past[name] {
			if p != w.running[name] && p.alive {
				w.crash(p)
			}
		}
	}
}

// isKnown reports whether the control plane knows a pool's marker or an image in it. Until then it accepts any empty directory.
func (w *Simulation) isKnown(uid string) bool {
	return get[*model.StoragePool](w.store, model.KindStoragePool, uid).Status.Marker != "" ||
		slices.ContainsFunc(w.volumes(), func(v *model.Volume) bool { return v.Spec.Pool == uid && v.Status.CapacityBytes > 0 })
}

// heal restores everything.
func (w *Simulation) heal() {
	if w.identity != nil {
		w.putBack()
	}
}

func (w *Simulation) putBack() {
	i := w.identity
	w.endReplaced()
	clear(i.replaced)
	clear(i.truncated)
	for _, d := range w.disks {
		d.damaged = [2]bool{}
	}
	for _, p := range i.pools {
		p.away = false
	}
}

// present reports whether a file is at an image's path. It may be another file.
func (w *Simulation) present(pool, location string) bool {
	if p := w.identity.pools[pool]; p.away {
		return p.below[location]
	}
	return w.images[location] != 0
}

// storageMismatch returns why a gateway does not use the storage at the path of a local pool; empty: it does. That storage may get
// its first marker.
func (w *Simulation) storageMismatch(uid string) string {
	i := w.identity
	if i == nil || i.pools[uid] == nil || w.broken == NoMarker {
		return ""
	}
	p, known := i.pools[uid], get[*model.StoragePool](w.store, model.KindStoragePool, uid).Status.Marker
	switch {
	case p.away && known != "":
		return "no marker of the pool"
	case p.away || p.marker == "" && known == "":
		for _, v := range w.volumes() {
			if v.Spec.Pool == uid && v.Status.CapacityBytes > 0 && !w.present(uid, model.VolumeLocation(v)) {
				return "no marker, and an image is missing"
			}
		}
		if !p.away {
			p.marker = "marker of " + uid
		}
	case p.marker != known && known != "":
		return "another marker"
	}
	return ""
}

// reportPool reports on the local pool of a gateway's node, if that has changed.
func (w *Simulation) reportPool(p *process) {
	if w.identity == nil || !p.runs() || !p.stream || w.gateway(p.name) == nil {
		return
	}
	uid := p.pool()
	r := model.PoolReport{UID: uid, Gateway: p.ref, CapacityBytes: 1 << 40, SnapshotsSupported: uid != noReflink}
	if r.Problem = w.storageMismatch(uid); r.Problem != "" {
		r.Unidentified = true
	} else if w.broken != NoMarker {
		if r.Marker = w.identity.pools[uid].marker; w.identity.pools[uid].away {
			r.Marker = "marker below " + uid
		}
	}
	key := recordKey("pool", uid, p.ref.Number)
	if known, ok := w.store.records[key]; ok && known.Pool.Gateway == r.Gateway && known.Pool.Problem == r.Problem && known.Pool.Marker == r.Marker {
		return
	}
	w.store.record(key, model.Observed{Pool: &r})
}

// unopenable returns why a gateway does not open a local volume; empty: it does.
func (w *Simulation) unopenable(v *model.Volume) string {
	if w.identity == nil || w.identity.pools[v.Spec.Pool] == nil {
		return ""
	}
	location := model.VolumeLocation(v)
	switch doubt := w.storageMismatch(v.Spec.Pool); {
	case doubt != "":
		return doubt
	case !w.present(v.Spec.Pool, location):
		return "no such file"
	case w.identity.replaced[location] && w.broken != NoImageRecord:
		return "another file than the volume's image"
	case w.identity.truncated[location] && w.broken != NoImageSize:
		return "the image's end is missing"
	}
	return ""
}

// checkImage: the served image is the recorded one, for hosts with the recorded secrets.
func (w *Simulation) checkImage(p *process, uid string) {
	if w.identity == nil {
		return
	}
	if p.secrets != nil && !fits(p.secrets, w.store) {
		w.violate("%s serves %s to hosts whose secrets its replica could not decrypt", p.ref, uid)
	}
	for _, v := range w.volumes() {
		if v.Meta.UID != uid || w.identity.pools[v.Spec.Pool] == nil {
			continue
		}
		if w.identity.pools[v.Spec.Pool].away {
			w.violate("%s serves %s from storage that is not the pool's", p.ref, uid)
		}
		if w.identity.replaced[model.VolumeLocation(v)] {
			w.violate("%s serves %s from another image than its own", p.ref, uid)
		}
		if w.identity.truncated[model.VolumeLocation(v)] {
			w.violate("%s serves %s from an image that lost its end", p.ref, uid)
		}
	}
}

// checkMade: each volume that was made has an image in its pool.
func (w *Simulation) checkMade() {
	if w.identity == nil {
		return
	}
	for _, v := range w.volumes() {
		if !inCeph(v) && v.Status.CapacityBytes != 0 && w.images[model.VolumeLocation(v)] == 0 {
			w.violate("%s was made and its pool has no image of it", v.Meta.Name)
		}
	}
}

// doBelow executes a job in the directory below a mount point, as a gateway that does not compare markers would.
func (w *Simulation) doBelow(j *model.Job) model.JobResult {
	below := w.identity.pools[j.PoolUID].below
	switch j.Action {
	case model.JobDeleteImage:
		delete(below, j.Location)
	case model.JobDeleteSnapshotImage:
		delete(below, j.SnapshotLocation)
	case model.JobCreateSnapshotImage, model.JobCloneImage:
		return model.JobResult{Problem: "no such file"}
	default:
		below[j.Location] = true
	}
	return model.JobResult{DonePermille: model.JobDone}
}
