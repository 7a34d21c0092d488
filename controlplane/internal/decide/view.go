package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

// LeaderView is what the leader knows: the objects, and what gateways observe. Its decisions are functions of it and of the
// time alone. Objects in it are never changed, only replaced. It is not safe for several goroutines.
type LeaderView struct {
	// Term began at this version of the store, at that time by the leader's clock.
	Term  int64
	Since time.Time

	// BlocklistFor is how long clients that are shut out of Ceph stay so.
	BlocklistFor time.Duration

	*objects.Objects
	Jobs map[string]*model.Job

	links   map[uint32]*link
	reports map[string]map[uint32]model.VolumeReport
	peers   map[uint32]map[uint32]heard
	pools   map[string]map[uint32]model.PoolReport
	loads   map[uint32]model.LoadReport
	applied map[objectID]map[uint32]model.AppliedReport
	clients map[string]map[model.GatewayRef]*model.RadosClients

	// rates of volumes, and when those in use were found so last, by UID.
	rates map[string]average
	used  map[string]time.Time

	// holds are the volumes that a gateway owns or shall own, moves how many are moving away from it.
	holds map[uint32]map[string]bool
	moves map[uint32]int
	// unmade are the volumes that have no image yet and are made from a volume, snapshots those of it, both by its name.
	unmade, snapshots map[string]map[string]bool

	takeovers takeovers

	sessions sessions
	plan     plan
	failures map[string]map[uint32]failure
	// sighted is what was seen first by this leader, and when by its own clock.
	sighted map[Key]sighting
	// stays says of volumes that have to leave their owner, by name, why they cannot.
	stays  map[string]string
	deaths []death
	dirty  bool
}

// link is what is known of a gateway's stream.
type link struct {
	name       string
	connection *model.GatewayConnection
	version    int64
	// since is when the leader heard of the stream, by its own clock.
	since time.Time
	// lost is when the leader saw the stream gone, by its own clock.
	lost time.Time
	// seen says that it saw the stream end; otherwise there was none when it began to look.
	seen bool
}

// heard is what a peer said last of another, and when the leader heard it.
type heard struct {
	model.PeerReport
	version int64
	at      time.Time
}

// failure counts what went wrong with a volume at a gateway, so that the next attempt waits, or is another's.
type failure struct {
	count int
	at    time.Time
}

// sighting is when something was decided on first as it is by a mark.
type sighting struct {
	mark uint64
	at   time.Time
}

// since is when something was decided on first as it is, which its mark tells from what it was before. What was stored with it is the
// wall clock of another replica, or of this one before it was set: nothing is waited for by that.
func (v *LeaderView) since(key Key, mark uint64, now time.Time) time.Time {
	if known, ok := v.sighted[key]; !ok || known.mark != mark {
		v.sighted[key] = sighting{mark, now}
	}
	return v.sighted[key].at
}

// NewLeaderView knows nothing yet; its term began now, at that version of the store.
func NewLeaderView(term int64, now time.Time) *LeaderView {
	return &LeaderView{
		Term: term, Since: now, BlocklistFor: BlocklistFor,
		Objects: objects.New(), Jobs: map[string]*model.Job{}, links: map[uint32]*link{},
		reports: map[string]map[uint32]model.VolumeReport{}, peers: map[uint32]map[uint32]heard{},
		pools: map[string]map[uint32]model.PoolReport{}, loads: map[uint32]model.LoadReport{},
		rates: map[string]average{}, used: map[string]time.Time{},
		applied:  map[objectID]map[uint32]model.AppliedReport{},
		clients:  map[string]map[model.GatewayRef]*model.RadosClients{},
		failures: map[string]map[uint32]failure{}, stays: map[string]string{}, sighted: map[Key]sighting{},
		holds: map[uint32]map[string]bool{}, moves: map[uint32]int{},
		unmade: map[string]map[string]bool{}, snapshots: map[string]map[string]bool{},
		takeovers: newTakeovers(), sessions: newSessions(), dirty: true,
	}
}

// ResetKind forgets all objects of a kind; the present ones follow.
func (v *LeaderView) ResetKind(kind model.Kind) {
	v.Reset(kind)
	if reset := rulesOf(kind).reset; reset != nil {
		reset(v)
	}
	v.dirty = true
}

// Put takes up an object, unless a newer one is known: what was stored is put at once, and told by a watch later.
func (v *LeaderView) Put(object model.Object) {
	meta := object.Metadata()
	before := v.Get(object.Kind(), meta.Name)
	if before != nil && before.Metadata().Version >= meta.Version {
		return
	}
	v.Objects.Put(object)
	v.count(before, object)
	v.index(before, object)
	if volume, ok := object.(*model.Volume); ok {
		v.arrived(before, volume)
	}
	v.dirty = true
}

// Delete forgets an object that was gone at a version.
func (v *LeaderView) Delete(object model.Object, version int64) {
	kind, name := object.Kind(), object.Metadata().Name
	if known := v.Get(kind, name); known != nil && known.Metadata().Version <= version {
		v.Forget(kind, name)
		v.count(known, nil)
		v.index(known, nil)
	}
	delete(v.applied, objectID{kind, object.Metadata().UID})
	if deleted := rulesOf(kind).deleted; deleted != nil {
		deleted(v, object)
	}
	v.dirty = true
}

// count keeps what gateways hold up to date with one object, which counts if it is a volume; nil: it isn't there.
func (v *LeaderView) count(before, now model.Object) {
	each := func(object model.Object, do func(name string, number uint32), moves int) {
		volume, ok := object.(*model.Volume)
		if !ok {
			return
		}
		ownership := volume.Status.Ownership
		for _, ref := range []model.GatewayRef{ownership.Owner, ownership.Next} {
			if !ref.IsZero() {
				do(volume.Meta.Name, ref.Number)
			}
		}
		if ownership.State == model.Moving {
			v.moves[ownership.Owner.Number] += moves
		}
	}
	each(before, func(name string, number uint32) { delete(v.holds[number], name) }, -1)
	each(now, func(name string, number uint32) { put(v.holds, number, name, true) }, 1)
}

// index keeps what hangs on a volume up to date with one object, nil: it isn't there. A failover changes hundreds of volumes: to look
// through all for each would cost as many times as much.
func (v *LeaderView) index(before, now model.Object) {
	if of, name := dependencyOf(before); of != "" {
		delete(v.indexOf(before)[of], name)
		if len(v.indexOf(before)[of]) == 0 {
			delete(v.indexOf(before), of)
		}
	}
	if of, name := dependencyOf(now); of != "" {
		put(v.indexOf(now), of, name, true)
	}
}

func (v *LeaderView) indexOf(object model.Object) map[string]map[string]bool {
	if object.Kind() == model.KindSnapshot {
		return v.snapshots
	}
	return v.unmade
}

// dependencyOf returns the volume whose change an object waits for, and the name of the object; empty: it waits for none.
func dependencyOf(object model.Object) (volume, name string) {
	switch o := object.(type) {
	case *model.Snapshot:
		return o.Spec.Volume, o.Meta.Name
	case *model.Volume:
		if o.Status.CapacityBytes == 0 {
			return o.Spec.Source.Volume, o.Meta.Name
		}
	}
	return "", ""
}

// PutJob and DeleteJob take up a change of a job.
func (v *LeaderView) PutJob(job *model.Job) {
	if known := v.Jobs[job.ID]; known == nil || known.Version < job.Version {
		v.Jobs[job.ID] = job
	}
}

// DeleteJob forgets a job that was gone at a version.
func (v *LeaderView) DeleteJob(id string, version int64) {
	if known := v.Jobs[id]; known != nil && known.Version <= version {
		delete(v.Jobs, id)
	}
}

// target that maps a volume, nil where none does or it is being deleted.
func (v *LeaderView) target(volume string) *model.Target {
	if t := v.TargetOf(volume); t != nil && !t.Meta.Deleting() {
		return t
	}
	return nil
}

// holding are the volumes that a gateway has anything to do with: as the owner, or as the next one.
func (v *LeaderView) holding(number uint32) map[string]bool { return v.holds[number] }

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
func (v *LeaderView) Standing(ref model.GatewayRef) Standing {
	if now, ok := v.connected(ref.Number); ok {
		if now == ref {
			return Present
		}
		return Gone
	}
	g := v.GatewayByNumber(ref.Number)
	if g == nil || g.Status.Incarnation != ref.Incarnation || g.Status.Health == model.GatewayDead {
		return Gone
	}
	return Absent
}

// report of a volume by an incarnation, if there is one.
func (v *LeaderView) report(uid string, by model.GatewayRef) (model.VolumeReport, bool) {
	r, ok := v.reports[uid][by.Number]
	return r, ok && r.Gateway == by
}

// fail notes that something went wrong with a volume at a gateway.
func (v *LeaderView) fail(volume string, gateway uint32, now time.Time) {
	put(v.failures, volume, gateway, failure{v.failures[volume][gateway].count + 1, now})
}

// succeed forgets what went wrong.
func (v *LeaderView) succeed(volume string, gateway uint32) { delete(v.failures[volume], gateway) }

// gatewayName is what messages call a gateway: its name, or its number if the gateway was removed.
func (v *LeaderView) gatewayName(number uint32) string {
	if g := v.GatewayByNumber(number); g != nil {
		return g.Meta.Name
	}
	return fmt.Sprintf("number %d", number)
}

// incarnationName is what messages call an incarnation of a gateway.
func (v *LeaderView) incarnationName(ref model.GatewayRef) string {
	return v.gatewayName(ref.Number) + "/" + ref.Incarnation
}

// compareRefs orders incarnations.
func compareRefs(a, b model.GatewayRef) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Incarnation, b.Incarnation))
}

// names in order, so that decisions are the same however maps are walked.
func names[T any](all map[string]T) []string {
	sorted := make([]string, 0, len(all))
	for name := range all {
		sorted = append(sorted, name)
	}
	slices.SortFunc(sorted, cmp.Compare)
	return sorted
}
