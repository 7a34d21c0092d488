package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// How the owner of a volume in Ceph is shut out (R2):
//
//	Owned by A --BeginFence: epoch+1--> Fencing A
//	the pool: job FenceClients of all that A has recorded in it, once for all its volumes --> noted in the record
//	Fencing A --record whole fenced, and unchanged when that is stored: epoch+1--> Opening B, or Orphaned
//
// A gateway serves only after it has loaded the reservations in the present epoch, later than its client was
// recorded: so whoever serves in the epoch before BeginFence did with a client that is in the record then.

// fenceID names the job that shuts an incarnation out of a pool.
func fenceID(pool *model.StoragePool, ref model.GatewayRef) string {
	return jobID(pool.Meta.UID, fmt.Sprintf("fence-%d-%s", ref.Number, ref.Incarnation))
}

// PutRadosClients takes up a record, unless a newer one is known.
func (v *View) PutRadosClients(record *store.RadosClients) {
	if known := v.clients[record.PoolUID][record.Gateway]; known == nil || known.Version < record.Version {
		put(v.clients, record.PoolUID, record.Gateway, record)
	}
}

// DeleteRadosClients forgets a record that was gone at a version.
func (v *View) DeleteRadosClients(record *store.RadosClients, version int64) {
	if known := v.clients[record.PoolUID][record.Gateway]; known != nil && known.Version <= version {
		delete(v.clients[record.PoolUID], record.Gateway)
	}
}

// ResetRadosClients forgets all; the present ones follow.
func (v *View) ResetRadosClients() { clear(v.clients) }

// touchedByRadosClients is what may be decided now: who waits for a fence, and who finds somebody to own it.
func (v *View) touchedByRadosClients(record *store.RadosClients) []Key {
	pool := v.StoragePoolByUID(record.PoolUID)
	if pool == nil {
		return nil
	}
	touched := []Key{{model.KindStoragePool, pool.Meta.Name}}
	for name, volume := range v.Volumes {
		is := volume.Status.Ownership
		waits := is.State == model.Orphaned || is.State == model.Unowned && v.target(name) != nil || is.Fence == record.Gateway ||
			volume.Status.CapacityBytes < volume.Spec.SizeBytes || volume.Meta.Deleting()
		if volume.Spec.Pool == pool.Meta.Name && waits {
			touched = append(touched, Key{model.KindVolume, name})
		}
	}
	return touched
}

// hasClient says whether an incarnation has a client by which it can open images of a pool.
func (v *View) hasClient(pool *model.StoragePool, ref model.GatewayRef) bool {
	record := v.clients[pool.Meta.UID][ref]
	return record != nil && !record.Leaving && len(record.Open()) > 0
}

// given has a change hold only while the clients of those whom it gives the volume to are as they were seen: a record may be
// forgotten meanwhile, and whoever is not recorded could not be shut out.
func (o *owning) given(change *OwnChange) {
	next, err := change.Change(change.From)
	if err != nil {
		return
	}
	for _, ref := range []model.GatewayRef{next.Owner, next.Next} {
		record := o.clients[o.pool.Meta.UID][ref]
		if record != nil && ref != o.is.Owner && ref != o.is.Next {
			change.Records = append(change.Records, record)
		}
	}
}

// stepFencing gives the volume on once nothing of its former owner can reach it.
func (o *owning) stepFencing() *Action {
	o.d.Alarm = AlarmNoOwner
	fence := o.is.Fence
	record := o.clients[o.pool.Meta.UID][fence]
	r, told := o.report(o.volume.Meta.UID, fence)
	itself := told && r.Epoch+1 == o.is.Epoch && ends(r.State)
	if record == nil && o.volume.Meta.Deleting() {
		// Nobody takes over, and an image that is open is not removed.
		record = &store.RadosClients{PoolUID: o.pool.Meta.UID, Gateway: fence}
	}
	if !itself && (record == nil || len(record.Open()) > 0) {
		return nil // DecidePool sees to it
	}
	var clients []string
	if record != nil {
		clients = record.Fenced()
	}
	var next model.GatewayRef
	if o.wanted() {
		next, _ = o.candidate(fence)
		if !next.IsZero() && !o.mayTakeOver() {
			return nil
		}
	}
	a := o.change(reasonFencedOut, func(is model.Ownership) (model.Ownership, error) { return is.Fenced(fence, clients, next) },
		&Event{false, reasonFencedOut, fmt.Sprintf("gateway %s is shut out", fence)})
	if !itself {
		a.Own.Records = append(a.Own.Records, record)
	}
	return a
}

// whyFencing is for people: what the fence of a volume's former owner waits for.
func (v *View) whyFencing(volume *model.Volume) string {
	fence, pool := volume.Status.Ownership.Fence, v.StoragePools[volume.Spec.Pool]
	why := fmt.Sprintf("gateway %s, the owner, is gone and has yet to be shut out", fence)
	if pool == nil {
		return why
	}
	if v.clients[pool.Meta.UID][fence] == nil {
		return why + ": which clients of Ceph it had is not recorded, so nobody can; it ends when that very process is back " +
			"and lets go, or the volume is deleted"
	}
	if job := v.Jobs[fenceID(pool, fence)]; job != nil && job.Result.Problem != "" {
		return fmt.Sprintf("%s; gateway %d failed to: %s", why, job.Gateway, job.Result.Problem)
	}
	return why
}

// decideFences has incarnations shut out of a pool for whom volumes of it wait, each once, and forgets the clients of those
// that are gone and that nothing waits for.
func (v *View) decideFences(pool *model.StoragePool, now time.Time, d *Decision) {
	held, fencing := map[model.GatewayRef]bool{}, map[model.GatewayRef]bool{}
	for _, volume := range v.Volumes {
		if is := volume.Status.Ownership; volume.Spec.Pool == pool.Meta.Name {
			held[is.Owner], held[is.Next], held[is.Fence] = true, true, true
			fencing[is.Fence] = true
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(v.clients[pool.Meta.UID]), compareRefs) {
		record, job := v.clients[pool.Meta.UID][ref], v.Jobs[fenceID(pool, ref)]
		switch {
		case fencing[ref] && len(record.Open()) > 0:
			v.fence(pool, record, now, d)
		case job != nil:
			d.add(drop(pool, job))
		case !held[ref] && v.Standing(ref) == Gone:
			a := about(pool)
			a.DropClients = record
			d.add(a)
		}
	}
	for _, id := range names(v.Jobs) { // a job that was given out late, or whose record a restored store has lost
		job := v.Jobs[id]
		if job.Action == store.JobFenceClients && job.PoolUID == pool.Meta.UID && !v.fencedBy(pool, id) {
			d.add(drop(pool, job))
		}
	}
}

// fencedBy says that a job is for a record that is there.
func (v *View) fencedBy(pool *model.StoragePool, id string) bool {
	for ref := range v.clients[pool.Meta.UID] {
		if fenceID(pool, ref) == id {
			return true
		}
	}
	return false
}

func (v *View) fence(pool *model.StoragePool, record *store.RadosClients, now time.Time, d *Decision) {
	p := v.pursue(d, pool, pool, store.Job{ID: fenceID(pool, record.Gateway), Action: store.JobFenceClients,
		Clients: record.Open(), ExpireSeconds: int64(v.BlocklistFor / time.Second)}, whom{last: record.Gateway.Number}, now)
	if p.done == nil {
		return
	}
	a := about(pool)
	a.FenceClients, a.Clients = record, p.done.Clients
	a.Event = &Event{true, reasonFencedOut, fmt.Sprintf("gateway %s is shut out of the pool", record.Gateway)}
	d.add(a, drop(pool, p.done))
}
