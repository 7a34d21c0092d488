package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/orchestrator"
	"sluice.dev/sluice/controlplane/internal/store"
)

// memory has the store's promises, and nothing else of it: a change is made whole, of the newest state, and moves the
// revision; watches tell changes in their order, as late as they like.
type memory struct {
	revision int64
	objects  map[orchestrator.Key]model.Object
	records  map[string]store.Observed
	jobs     map[string]*store.Job
	log      []change
	clients  map[model.GatewayRef]*store.RadosClients
	// clientLog tells of clients.
	clientLog []clientChange
	ports     uint32
	replaced  map[string]bool
}

// change is one entry of the log that watches follow.
type change struct {
	object  model.Object
	record  store.Observed
	job     *store.Job
	deleted bool
	version int64
}

func newMemory() *memory {
	return &memory{objects: map[orchestrator.Key]model.Object{}, records: map[string]store.Observed{},
		jobs: map[string]*store.Job{}, clients: map[model.GatewayRef]*store.RadosClients{}, replaced: map[string]bool{}}
}

func keyOf(o model.Object) orchestrator.Key {
	return orchestrator.Key{Kind: o.Kind(), Name: o.Metadata().Name}
}

// put stores an object as it is now.
func (m *memory) put(o model.Object) {
	m.revision++
	o.Metadata().Version = m.revision
	m.objects[keyOf(o)] = o
	m.log = append(m.log, change{object: o, version: m.revision})
}

func (m *memory) remove(o model.Object) {
	m.revision++
	delete(m.objects, keyOf(o))
	m.log = append(m.log, change{object: o, deleted: true, version: m.revision})
}

func (m *memory) record(key string, o store.Observed) {
	m.revision++
	o.Version = m.revision
	m.records[key] = o
	m.log = append(m.log, change{record: o, version: m.revision})
}

func (m *memory) forget(key string) {
	o, known := m.records[key]
	if !known {
		return
	}
	m.revision++
	o.Version = m.revision
	delete(m.records, key)
	m.log = append(m.log, change{record: o, deleted: true, version: m.revision})
}

func (m *memory) putJob(j store.Job) {
	m.revision++
	j.Version = m.revision
	m.jobs[j.ID] = &j
	m.log = append(m.log, change{job: &j, version: m.revision})
}

func (m *memory) dropJob(j *store.Job) {
	m.revision++
	delete(m.jobs, j.ID)
	m.log = append(m.log, change{job: j, deleted: true, version: m.revision})
}

func get[T model.Object](m *memory, kind model.Kind, name string) T {
	o, _ := m.objects[orchestrator.Key{Kind: kind, Name: name}].(T)
	return o
}

// copyOf an object, so deep that its status can be changed.
func copyOf(object model.Object) model.Object {
	switch o := object.(type) {
	case *model.Volume:
		c := *o
		c.Status.Conditions = slices.Clone(o.Status.Conditions)
		return &c
	case *model.Target:
		c := *o
		c.Status.Conditions = slices.Clone(o.Status.Conditions)
		c.Status.Ports = slices.Clone(o.Status.Ports)
		return &c
	case *model.Gateway:
		c := *o
		c.Status.Conditions = slices.Clone(o.Status.Conditions)
		return &c
	case *model.StoragePool:
		c := *o
		c.Status.Conditions = slices.Clone(o.Status.Conditions)
		return &c
	case *model.Snapshot:
		c := *o
		c.Status.Conditions = slices.Clone(o.Status.Conditions)
		return &c
	}
	return object
}

// tell brings a view up to a place in the log.
func (m *memory) tell(v *orchestrator.View, from, to int, now time.Time, rewrite func(store.Observed) store.Observed) {
	for _, c := range m.log[from:to] {
		switch {
		case c.object != nil && c.deleted:
			v.Delete(c.object, c.version)
		case c.object != nil:
			v.Put(c.object)
		case c.job != nil && c.deleted:
			v.DeleteJob(c.job.ID, c.version)
		case c.job != nil:
			v.PutJob(c.job)
		case c.deleted:
			v.Unobserve(c.record, now)
		default:
			v.Observe(rewrite(c.record), now)
		}
	}
}

// tellAll is what a watch begins with.
func (m *memory) tellAll(v *orchestrator.View, now time.Time, rewrite func(store.Observed) store.Observed) {
	for _, o := range m.objects {
		v.Put(o)
	}
	for _, key := range slices.Sorted(maps.Keys(m.records)) {
		v.Observe(rewrite(m.records[key]), now)
	}
	for _, j := range m.jobs {
		v.PutJob(j)
	}
	for _, r := range m.clients {
		v.PutRadosClients(r)
	}
}

// apply carries an action out as the orchestrator does, and says whether it was stored. What a leader that was deposed
// decided is refused, as the store does it; but changes of ownership are let through to their own compare-and-swap,
// which has to be enough.
func (w *World) apply(a orchestrator.Action, by *leader, heard int) bool {
	m := w.store
	if a.Own != nil {
		return w.own(a, heard)
	}
	if by != w.leaders[len(w.leaders)-1] {
		return false
	}
	if a.FenceClients != nil || a.DropClients != nil {
		return w.applyClients(a)
	}
	if a.Job != nil {
		if known := m.jobs[a.Job.ID]; known != nil && known.Version != a.Job.Version || known == nil && a.Job.Version != 0 {
			return false
		}
		if makes(a.Job.Action) && w.broken != NoJobGuard {
			if o := m.objects[orchestrator.Key{Kind: a.Kind, Name: a.Name}]; o == nil || o.Metadata().Deleting() {
				return false // nothing is made any more of what was deleted
			}
		}
		j := *a.Job
		j.Attempt++
		j.Result, j.Since = store.JobResult{}, w.now
		if j.Action == store.JobFenceClients {
			w.checkFence(a)
			if w.broken == NoFence {
				j.Result = store.JobResult{DonePermille: store.JobDone, At: w.now}
			}
		}
		m.putJob(j)
		return true
	}
	if a.DropJob != nil {
		if known := m.jobs[a.DropJob.ID]; known != nil && known.Version == a.DropJob.Version {
			m.dropJob(known)
		}
		return true
	}
	if a.Forget != 0 {
		return true
	}
	object := m.objects[orchestrator.Key{Kind: a.Kind, Name: a.Name}]
	if object == nil || object.Metadata().UID != a.UID {
		return false
	}
	if a.Remove != nil {
		return w.remove(a, object, heard)
	}
	changed := copyOf(object)
	if a.Ports != nil {
		status := &changed.(*model.Target).Status
		for _, port := range a.Ports {
			m.ports++
			port.RelativePortID = m.ports
			status.Ports = append(status.Ports, port)
		}
	} else if !a.Modify(changed) {
		return false
	}
	w.checkModify(a, object, changed, heard)
	m.put(changed)
	return true
}

// makes says that a job is given out only while its object is there.
func makes(action store.JobAction) bool {
	switch action {
	case store.JobDeleteImage, store.JobDeleteSnapshotImage, store.JobFenceClients, store.JobListImages, store.JobFlattenImage:
		return false
	}
	return true
}

func (w *World) own(a orchestrator.Action, heard int) bool {
	volume := get[*model.Volume](w.store, model.KindVolume, a.Name)
	if volume == nil {
		return false
	}
	changed := copyOf(volume).(*model.Volume)
	if w.broken == NoCompareAndSwap {
		a.Own.From = volume.Status.Ownership
		if seen, ok := a.Object.(*model.Volume); ok {
			changed.Status.Ownership = seen.Status.Ownership
			a.Own.From = seen.Status.Ownership
		}
	}
	next, err := a.Owning(changed)
	if err != nil {
		return false
	}
	gone := func(r *store.RadosClients) bool { return !w.store.isStill(r) }
	if slices.ContainsFunc(a.Own.Records, gone) && w.broken != NoRecordGuard && w.broken != UnknownIsFenced {
		return false
	}
	if w.broken == NoLock && next.State == model.Acquiring {
		next, _ = next.Locked(next.Next)
	}
	next = volume.Status.Ownership.Ordered(next, w.now)
	w.checkOwn(a, volume, changed, next)
	w.checkNotRemoved(volume, next, heard)
	changed.Status.Ownership = next
	w.store.put(changed)
	return true
}

func (w *World) remove(a orchestrator.Action, object model.Object, heard int) bool {
	if object.Metadata().Version != a.Remove.Metadata().Version || !object.Metadata().Deleting() {
		return false
	}
	for id := range w.store.jobs {
		if strings.HasPrefix(id, object.Metadata().UID+".") && w.broken != NoJobGuard {
			return false
		}
	}
	switch o := object.(type) {
	case *model.Volume:
		w.checkVolumeGoes(o)
	case *model.Snapshot:
		w.checkSnapshotGoes(o)
	case *model.Gateway:
		w.removeGateway(o, heard)
		return true
	}
	w.store.remove(object)
	return true
}

func recordKey(what string, parts ...any) string { return what + "/" + fmt.Sprint(parts...) }
