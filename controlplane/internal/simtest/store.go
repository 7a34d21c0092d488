package simtest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// memory gives the guarantees of the store and nothing else. A change is made as a whole, from the newest state, and increases
// the revision. Watches report changes in order, with any delay.
type memory struct {
	revision int64
	objects  map[decide.Key]model.Object
	records  map[string]model.Observed
	jobs     map[string]*model.Job
	log      []change
	clients  map[model.GatewayRef]*model.RadosClients
	// clientLog has the changes of clients.
	clientLog []clientChange
	ports     uint32
	// system of the store.
	system   string
	replaced map[string]bool
	// keyCheck is the key check value of the store.
	keyCheck []byte
}

// change is one entry of the log that watches follow.
type change struct {
	object  model.Object
	record  model.Observed
	job     *model.Job
	deleted bool
	version int64
}

func newMemory() *memory {
	return &memory{system: firstSystem, keyCheck: systemKeys().NewCheckValue(keyCheckPlace),
		objects: map[decide.Key]model.Object{}, records: map[string]model.Observed{}, jobs: map[string]*model.Job{}, clients: map[model.GatewayRef]*model.RadosClients{}, replaced: map[string]bool{}}
}

func keyOf(o model.Object) decide.Key {
	return decide.Key{Kind: o.Kind(), Name: o.Metadata().Name}
}

// put stores an object.
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

func (m *memory) record(key string, o model.Observed) {
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

func (m *memory) putJob(j model.Job) *model.Job {
	m.revision++
	j.Version = m.revision
	m.jobs[j.ID] = &j
	m.log = append(m.log, change{job: &j, version: m.revision})
	return &j
}

func (m *memory) dropJob(j *model.Job) {
	m.revision++
	delete(m.jobs, j.ID)
	m.log = append(m.log, change{job: j, deleted: true, version: m.revision})
}

func get[T model.Object](m *memory, kind model.Kind, name string) T {
	o, _ := m.objects[decide.Key{Kind: kind, Name: name}].(T)
	return o
}

// copyOf returns a copy of an object, deep enough to change its status.
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

// applyLog applies the log up to a place to a view.
func (m *memory) applyLog(v *decide.LeaderView, from, to int, now time.Time, rewrite func(model.Observed) model.Observed) {
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

// applyAll applies the present state to a view, as a new watch does.
func (m *memory) applyAll(v *decide.LeaderView, now time.Time, rewrite func(model.Observed) model.Observed) {
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

func recordKey(what string, parts ...any) string { return what + "/" + fmt.Sprint(parts...) }
