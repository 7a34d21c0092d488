package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

// LeaderView is the leader's knowledge: the objects, and the gateways' reports. Decisions are functions of it and of the time
// alone. Its objects are never modified, only replaced. It is not safe for concurrent use.
type LeaderView struct {
	// Term is the store's version when the leader's term began, and Since that time by the leader's clock.
	Term  int64
	Since time.Time

	// BlocklistFor is the duration of blocklist entries of fenced Ceph clients.
	BlocklistFor time.Duration

	*objects.Objects
	Jobs map[string]*model.Job

	links   map[uint32]*link
	reports map[string]map[uint32]model.VolumeReport
	peers   map[uint32]map[uint32]peerReport
	pools   map[string]map[uint32]model.PoolReport
	loads   map[uint32]model.LoadReport
	applied map[objectID]map[uint32]model.AppliedReport
	clients map[string]map[model.GatewayRef]*model.RadosClients

	// rates are the average loads of volumes, and used the times when volumes in use were last seen in use, by uid.
	rates map[string]average
	used  map[string]time.Time

	// holds are the volumes that a gateway owns or is to own. moves is the number of volumes that are moving away from it.
	holds map[uint32]map[string]bool
	moves map[uint32]int
	// unmade are the volumes without an image that are made from a volume, and snapshots the snapshots of a volume, both by that
	// volume's name.
	unmade, snapshots map[string]map[string]bool

	takeovers takeovers

	sessions sessions
	plan     plan
	failures map[string]map[uint32]failure
	// sighted records when this leader first saw a state, by its own clock.
	sighted map[Key]sighting
	// stayReasons has, by name, why volumes that have to leave their owner cannot.
	stayReasons map[string]string
	// unreachedSince has the time since when hosts or peers do not reach a gateway with a stream, by number.
	unreachedSince faultTimes
	// lostSince has the time since when a peer does not reach a gateway with a stream, by number.
	lostSince faultTimes
	deaths    []death
	dirty     bool
}

// link is the leader's knowledge of a gateway's stream.
type link struct {
	name       string
	connection *model.GatewayConnection
	version    int64
	// since is the time when the leader received the report of the stream, by its own clock.
	since time.Time
	// lost is the time when the leader saw that the stream was gone, by its own clock.
	lost time.Time
	// seen: the leader saw the stream end. Otherwise there was no stream when the leader's term began.
	seen bool
}

// peerReport is a peer's last report on another gateway, and the time when the leader received it.
type peerReport struct {
	model.PeerReport
	version int64
	at      time.Time
}

// failure counts the failures of a volume at a gateway, so that the next attempt waits or is made by another gateway.
type failure struct {
	count int
	at    time.Time
}

// sighting is the time of the first decision on a state, which mark identifies.
type sighting struct {
	mark uint64
	at   time.Time
}

// since returns the time of this leader's first decision on the present state, which mark distinguishes from earlier ones. The
// time that is stored with the state is the wall clock of another replica, or of this one before it was set. No wait is measured
// by it.
func (v *LeaderView) since(key Key, mark uint64, now time.Time) time.Time {
	if known, ok := v.sighted[key]; !ok || known.mark != mark {
		v.sighted[key] = sighting{mark, now}
	}
	return v.sighted[key].at
}

// NewLeaderView returns an empty view. Its term began now, at that version of the store.
func NewLeaderView(term int64, now time.Time) *LeaderView {
	return &LeaderView{
		Term: term, Since: now, BlocklistFor: BlocklistFor,
		Objects: objects.New(), Jobs: map[string]*model.Job{}, links: map[uint32]*link{},
		reports: map[string]map[uint32]model.VolumeReport{}, peers: map[uint32]map[uint32]peerReport{},
		pools: map[string]map[uint32]model.PoolReport{}, loads: map[uint32]model.LoadReport{},
		rates: map[string]average{}, used: map[string]time.Time{},
		applied:  map[objectID]map[uint32]model.AppliedReport{},
		clients:  map[string]map[model.GatewayRef]*model.RadosClients{},
		failures: map[string]map[uint32]failure{}, stayReasons: map[string]string{}, sighted: map[Key]sighting{}, unreachedSince: faultTimes{}, lostSince: faultTimes{},
		holds: map[uint32]map[string]bool{}, moves: map[uint32]int{},
		unmade: map[string]map[string]bool{}, snapshots: map[string]map[string]bool{},
		takeovers: newTakeovers(), sessions: newSessions(), dirty: true,
	}
}

// ResetKind removes all objects of a kind; the present ones follow.
func (v *LeaderView) ResetKind(kind model.Kind) {
	v.Reset(kind)
	if reset := rulesOf(kind).reset; reset != nil {
		reset(v)
	}
	v.dirty = true
}

// Put adds or replaces an object, unless a newer one is known. The leader puts what it stored at once; a watch reports it later.
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

// Delete removes an object that was deleted at a version.
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

// count updates holds and moves for one object, if it is a volume; nil: it does not exist.
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

// index updates the dependents of a volume for one object; nil: it does not exist. A failover changes hundreds of volumes, so
// searching all objects for each would be quadratic.
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

// dependencyOf returns the volume on whose changes an object depends, and the name of the object; empty: it depends on none.
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

// PutJob adds or replaces a job, unless a newer one is known.
func (v *LeaderView) PutJob(job *model.Job) {
	if known := v.Jobs[job.ID]; known == nil || known.Version < job.Version {
		v.Jobs[job.ID] = job
	}
}

// DeleteJob removes a job that was deleted at a version.
func (v *LeaderView) DeleteJob(id string, version int64) {
	if known := v.Jobs[id]; known != nil && known.Version <= version {
		delete(v.Jobs, id)
	}
}

// target returns the target that maps a volume, nil if there is none or it is being deleted.
func (v *LeaderView) target(volume string) *model.Target {
	if t := v.TargetOf(volume); t != nil && !t.Meta.Deleting() {
		return t
	}
	return nil
}

// holding returns the volumes of which a gateway is the owner or the next owner.
func (v *LeaderView) holding(number uint32) map[string]bool { return v.holds[number] }

// Standing is the leader's assessment of an incarnation.
type Standing int

// The standings.
const (
	// Absent has no stream and is not known to be dead: it may continue to serve (R3).
	Absent Standing = iota
	// Present has a stream.
	Present
	// Gone is dead: it was declared dead or replaced by another incarnation, or its gateway was removed.
	Gone
)

// Standing returns the assessment of an incarnation. If another incarnation is the present one, it is gone regardless of its
// reports.
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

// report returns an incarnation's report on a volume, if there is one.
func (v *LeaderView) report(uid string, by model.GatewayRef) (model.VolumeReport, bool) {
	r, ok := v.reports[uid][by.Number]
	return r, ok && r.Gateway == by
}

// fail records a failure of a volume at a gateway.
func (v *LeaderView) fail(volume string, gateway uint32, now time.Time) {
	put(v.failures, volume, gateway, failure{v.failures[volume][gateway].count + 1, now})
}

// succeed clears the failures of a volume at a gateway.
func (v *LeaderView) succeed(volume string, gateway uint32) { delete(v.failures[volume], gateway) }

// gatewayName returns a gateway's name for messages, or its number if the gateway was removed.
func (v *LeaderView) gatewayName(number uint32) string {
	if g := v.GatewayByNumber(number); g != nil {
		return g.Meta.Name
	}
	return fmt.Sprintf("number %d", number)
}

// incarnationName returns the name of an incarnation for messages.
func (v *LeaderView) incarnationName(ref model.GatewayRef) string {
	return v.gatewayName(ref.Number) + "/" + ref.Incarnation
}

// compareRefs orders incarnations.
func compareRefs(a, b model.GatewayRef) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Incarnation, b.Incarnation))
}

// names returns the sorted names, so that decisions do not depend on the order of maps.
func names[T any](all map[string]T) []string {
	sorted := make([]string, 0, len(all))
	for name := range all {
		sorted = append(sorted, name)
	}
	slices.SortFunc(sorted, cmp.Compare)
	return sorted
}
