package orchestrator

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// View is what the leader knows: the objects, and what gateways observe. Its decisions are functions of it and of the
// time alone. Objects in it are never changed, only replaced. It is not safe for several goroutines.
type View struct {
	// Term began at this version of the store, at that time by the leader's clock.
	Term  int64
	Since time.Time

	Volumes      map[string]*model.Volume
	Targets      map[string]*model.Target
	Hosts        map[string]*model.Host
	Snapshots    map[string]*model.Snapshot
	StoragePools map[string]*model.StoragePool
	Gateways     map[string]*model.Gateway
	GatewayPools map[string]*model.GatewayPool
	Fabrics      map[string]*model.Fabric
	Jobs         map[string]*store.Job

	links   map[uint32]*link
	reports map[string]map[uint32]store.VolumeReport
	peers   map[uint32]map[uint32]heard
	pools   map[string]map[uint32]store.PoolReport
	loads   map[uint32]load

	// targetOf a volume by name, and gateways by number; made when asked for after a change.
	targetOf map[string]*model.Target
	numbers  map[uint32]*model.Gateway
	// holds are the volumes that a gateway owns or shall own, moves how many are moving away from it; uids name
	// volumes and snapshots.
	holds map[uint32]map[string]bool
	moves map[uint32]int
	uids  map[string]Key

	plan     plan
	failures map[string]map[uint32]failure
	deaths   []death
	dirty    bool
}

// link is what is known of a gateway's stream.
type link struct {
	name       string
	connection *store.GatewayConnection
	version    int64
	// lost is when the leader saw the stream gone, by its own clock.
	lost time.Time
	// seen says that it saw the stream end; otherwise there was none when it began to look.
	seen bool
}

// heard is what a peer said last of another, and when the leader heard it.
type heard struct {
	store.PeerReport
	version int64
	at      time.Time
}

// failure counts what went wrong with a volume at a gateway, so that the next attempt waits, or is another's.
type failure struct {
	count int
	at    time.Time
}

// NewView knows nothing yet; its term began now, at that version of the store.
func NewView(term int64, now time.Time) *View {
	return &View{
		Term: term, Since: now,
		Volumes: map[string]*model.Volume{}, Targets: map[string]*model.Target{},
		Hosts: map[string]*model.Host{}, Snapshots: map[string]*model.Snapshot{},
		StoragePools: map[string]*model.StoragePool{}, Gateways: map[string]*model.Gateway{},
		GatewayPools: map[string]*model.GatewayPool{}, Fabrics: map[string]*model.Fabric{},
		Jobs: map[string]*store.Job{}, links: map[uint32]*link{},
		reports: map[string]map[uint32]store.VolumeReport{}, peers: map[uint32]map[uint32]heard{},
		pools: map[string]map[uint32]store.PoolReport{}, loads: map[uint32]load{},
		failures: map[string]map[uint32]failure{}, holds: map[uint32]map[string]bool{}, moves: map[uint32]int{},
		uids: map[string]Key{}, dirty: true,
	}
}

// ResetKind forgets all objects of a kind; the present ones follow.
func (v *View) ResetKind(kind model.Kind) {
	switch kind {
	case model.KindVolume:
		clear(v.Volumes)
		clear(v.holds)
		clear(v.moves)
	case model.KindTarget:
		clear(v.Targets)
		v.targetOf = nil
	case model.KindHost:
		clear(v.Hosts)
	case model.KindSnapshot:
		clear(v.Snapshots)
	case model.KindStoragePool:
		clear(v.StoragePools)
	case model.KindGateway:
		clear(v.Gateways)
		v.numbers = nil
	case model.KindGatewayPool:
		clear(v.GatewayPools)
	case model.KindFabric:
		clear(v.Fabrics)
	}
	v.dirty = true
}

// Put takes up an object, unless a newer one is known.
func (v *View) Put(object model.Object) {
	switch o := object.(type) {
	case *model.Volume:
		before := v.Volumes[o.Meta.Name]
		newer(v.Volumes, o)
		v.count(before, v.Volumes[o.Meta.Name])
	case *model.Target:
		newer(v.Targets, o)
		v.targetOf = nil
	case *model.Host:
		newer(v.Hosts, o)
	case *model.Snapshot:
		newer(v.Snapshots, o)
		v.uids[o.Meta.UID] = Key{model.KindSnapshot, o.Meta.Name}
	case *model.StoragePool:
		newer(v.StoragePools, o)
	case *model.Gateway:
		newer(v.Gateways, o)
		v.numbers = nil
	case *model.GatewayPool:
		newer(v.GatewayPools, o)
	case *model.Fabric:
		newer(v.Fabrics, o)
	}
	v.dirty = true
}

func newer[T model.Object](all map[string]T, object T) {
	meta := object.Metadata()
	if known, ok := all[meta.Name]; !ok || known.Metadata().Version < meta.Version {
		all[meta.Name] = object
	}
}

// Delete forgets an object that was gone at a version.
func (v *View) Delete(object model.Object, version int64) {
	name := object.Metadata().Name
	switch o := object.(type) {
	case *model.Volume:
		before := v.Volumes[name]
		gone(v.Volumes, name, version)
		v.count(before, v.Volumes[name])
		delete(v.reports, o.Meta.UID)
		delete(v.failures, name)
		delete(v.uids, o.Meta.UID)
	case *model.Target:
		gone(v.Targets, name, version)
		delete(v.plan.paths, name)
		v.targetOf = nil
	case *model.Host:
		gone(v.Hosts, name, version)
	case *model.Snapshot:
		gone(v.Snapshots, name, version)
		delete(v.uids, o.Meta.UID)
	case *model.StoragePool:
		gone(v.StoragePools, name, version)
		delete(v.pools, o.Meta.UID)
	case *model.Gateway:
		gone(v.Gateways, name, version)
		delete(v.links, o.Status.Number)
		delete(v.peers, o.Status.Number)
		delete(v.loads, o.Status.Number)
		v.numbers = nil
	case *model.GatewayPool:
		gone(v.GatewayPools, name, version)
	case *model.Fabric:
		gone(v.Fabrics, name, version)
	}
	v.dirty = true
}

func gone[T model.Object](all map[string]T, name string, version int64) {
	if known, ok := all[name]; ok && known.Metadata().Version <= version {
		delete(all, name)
	}
}

// count keeps what gateways hold up to date with one volume; nil: it isn't there.
func (v *View) count(before, now *model.Volume) {
	if before == now {
		return
	}
	each := func(volume *model.Volume, do func(name string, number uint32), moves int) {
		if volume == nil {
			return
		}
		is := volume.Status.Ownership
		for _, ref := range []model.GatewayRef{is.Owner, is.Next} {
			if !ref.IsZero() {
				do(volume.Meta.Name, ref.Number)
			}
		}
		if is.State == model.Moving {
			v.moves[is.Owner.Number] += moves
		}
	}
	each(before, func(name string, number uint32) { delete(v.holds[number], name) }, -1)
	each(now, func(name string, number uint32) { put(v.holds, number, name, true) }, 1)
	if now != nil {
		v.uids[now.Meta.UID] = Key{model.KindVolume, now.Meta.Name}
	}
}

// PutJob and DeleteJob take up a change of a job.
func (v *View) PutJob(job *store.Job) {
	if known := v.Jobs[job.ID]; known == nil || known.Version < job.Version {
		v.Jobs[job.ID] = job
	}
}

// DeleteJob forgets a job that was gone at a version.
func (v *View) DeleteJob(id string, version int64) {
	if known := v.Jobs[id]; known != nil && known.Version <= version {
		delete(v.Jobs, id)
	}
}

func (v *View) gateway(number uint32) *model.Gateway {
	if v.numbers == nil {
		v.numbers = map[uint32]*model.Gateway{}
		for _, g := range v.Gateways {
			v.numbers[g.Status.Number] = g
		}
	}
	return v.numbers[number]
}

// target that maps a volume, nil where none does or it is being deleted.
func (v *View) target(volume string) *model.Target {
	if v.targetOf == nil {
		v.targetOf = map[string]*model.Target{}
		for _, t := range v.Targets {
			if t.Meta.Deleting() {
				continue
			}
			for _, lun := range t.Spec.Luns {
				v.targetOf[lun.Volume] = t
			}
		}
	}
	return v.targetOf[volume]
}

// holding are the volumes that a gateway has anything to do with: as the owner, or as the next one.
func (v *View) holding(number uint32) map[string]bool { return v.holds[number] }

// Standing is what the leader believes of one incarnation.
type Standing int

// The standings.
const (
	// Absent has no stream and is not known to be dead: it may serve on (R3).
	Absent Standing = iota
	// Present has a stream.
	Present
	// Gone is dead: declared so, or replaced by another incarnation, or its gateway was removed.
	Gone
)

// Standing of an incarnation. Another one than the present is gone, whatever it says.
func (v *View) Standing(ref model.GatewayRef) Standing {
	if now, ok := v.connected(ref.Number); ok {
		if now == ref {
			return Present
		}
		return Gone
	}
	g := v.gateway(ref.Number)
	if g == nil || g.Status.Incarnation != ref.Incarnation || g.Status.Health == model.GatewayDead {
		return Gone
	}
	return Absent
}

// report of a volume by an incarnation, if there is one.
func (v *View) report(uid string, by model.GatewayRef) (store.VolumeReport, bool) {
	r, ok := v.reports[uid][by.Number]
	return r, ok && r.Gateway == by
}

// fail notes that something went wrong with a volume at a gateway.
func (v *View) fail(volume string, gateway uint32, now time.Time) {
	put(v.failures, volume, gateway, failure{v.failures[volume][gateway].count + 1, now})
}

// succeed forgets what went wrong.
func (v *View) succeed(volume string, gateway uint32) { delete(v.failures[volume], gateway) }

// names in order, so that decisions are the same however maps are walked.
func names[T any](all map[string]T) []string {
	sorted := make([]string, 0, len(all))
	for name := range all {
		sorted = append(sorted, name)
	}
	slices.SortFunc(sorted, cmp.Compare)
	return sorted
}

// object of a kind and name, nil where there is none.
func (v *View) object(kind model.Kind, name string) model.Object {
	switch kind {
	case model.KindVolume:
		return orNil(v.Volumes, name)
	case model.KindTarget:
		return orNil(v.Targets, name)
	case model.KindSnapshot:
		return orNil(v.Snapshots, name)
	case model.KindStoragePool:
		return orNil(v.StoragePools, name)
	case model.KindGateway:
		return orNil(v.Gateways, name)
	}
	return nil
}

func orNil[T model.Object](all map[string]T, name string) model.Object {
	if object, ok := all[name]; ok {
		return object
	}
	return nil
}
