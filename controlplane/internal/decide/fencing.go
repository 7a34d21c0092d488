package decide

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// How the owner of a volume in Ceph is fenced (R2):
//
//	Owned by A --BeginFence: epoch+1--> Fencing A
//	the pool: job FenceClients of all that A has recorded in it, once for all its volumes --> noted in the record
//	Fencing A --record whole fenced, and unchanged when that is stored: epoch+1--> Opening B, or Orphaned
//
// A gateway serves only after it has loaded the reservations in the present epoch, which is after its client was recorded. So a
// gateway that serves in the epoch before BeginFence uses a client that is in the record then.

// fenceID returns the id of the job that fences an incarnation from a pool.
func fenceID(pool *model.StoragePool, ref model.GatewayRef) string {
	return jobID(pool.Meta.UID, fmt.Sprintf("fence-%d-%s", ref.Number, ref.Incarnation))
}

// PutRadosClients adds or replaces a record, unless a newer one is known.
func (v *LeaderView) PutRadosClients(record *model.RadosClients) {
	if known := v.clients[record.PoolUID][record.Gateway]; known == nil || known.Version < record.Version {
		put(v.clients, record.PoolUID, record.Gateway, record)
	}
}

// DeleteRadosClients removes a record that was deleted at a version.
func (v *LeaderView) DeleteRadosClients(record *model.RadosClients, version int64) {
	if known := v.clients[record.PoolUID][record.Gateway]; known != nil && known.Version <= version {
		delete(v.clients[record.PoolUID], record.Gateway)
	}
}

// ResetRadosClients removes all records; the present ones follow.
func (v *LeaderView) ResetRadosClients() { clear(v.clients) }

// TouchedByRadosClients returns the objects that a change of a record of clients affects: volumes that wait for a fence or for an
// owner, and their pool.
func (v *LeaderView) TouchedByRadosClients(record *model.RadosClients) []Key {
	pool := v.StoragePoolByUID(record.PoolUID)
	if pool == nil {
		return nil
	}
	touched := []Key{{model.KindStoragePool, pool.Meta.Name}}
	for name, volume := range v.Volumes {
		ownership := volume.Status.Ownership
		waits := ownership.State == model.Orphaned || ownership.State == model.Unowned && v.target(name) != nil || ownership.Fence == record.Gateway ||
			volume.Status.CapacityBytes < volume.Spec.SizeBytes || volume.Meta.Deleting()
		if volume.Spec.Pool == pool.Meta.Name && waits {
			touched = append(touched, Key{model.KindVolume, name})
		}
	}
	return touched
}

// hasClient reports whether an incarnation has a client with which it can open images of a pool.
func (v *LeaderView) hasClient(pool *model.StoragePool, ref model.GatewayRef) bool {
	record := v.clients[pool.Meta.UID][ref]
	return record != nil && !record.Leaving && len(record.Open()) > 0
}

// guardOnClients makes a change conditional on the records of the gateways that get the volume. A record may be dropped
// meanwhile, and a gateway without a record could not be fenced.
func (o *owning) guardOnClients(change *ChangeOwner) {
	next, err := change.Change(change.From)
	if err != nil {
		return
	}
	for _, ref := range []model.GatewayRef{next.Owner, next.Next} {
		record := o.clients[o.pool.Meta.UID][ref]
		if record != nil && ref != o.ownership.Owner && ref != o.ownership.Next {
			change.Records = append(change.Records, record)
		}
	}
}

// stepFencing gives the volume to the next owner once its former owner can no longer reach it.
func (o *owning) stepFencing() Action {
	o.decision.NoOwner = true
	fence := o.ownership.Fence
	record := o.clients[o.pool.Meta.UID][fence]
	r, known := o.report(o.volume.Meta.UID, fence)
	itself := known && r.Epoch+1 == o.ownership.Epoch && ends(r.State)
	if record == nil && o.volume.Meta.Deleting() {
		// No gateway takes over, and an image that is open is not removed.
		record = &model.RadosClients{PoolUID: o.pool.Meta.UID, Gateway: fence}
	}
	if !itself && (record == nil || len(record.Open()) > 0) {
		return nil // DecidePool makes the fence
	}
	var clients []string
	if record != nil {
		clients = record.Fenced()
	}
	var next model.GatewayRef
	if o.wantsOwner() {
		next, _ = o.candidate(fence)
		if !next.IsZero() && !o.mayTakeOver() {
			return nil
		}
	}
	a := o.change(reasonFencedOut, func(from model.Ownership) (model.Ownership, error) { return from.Fenced(fence, clients, next) },
		&Event{false, reasonFencedOut, fmt.Sprintf("gateway %s is shut out", o.incarnationName(fence))})
	if !itself {
		a.Records = append(a.Records, record)
	}
	return a
}

// fencingMessage describes to users what the fence of a volume's former owner waits for.
func (v *LeaderView) fencingMessage(volume *model.Volume) string {
	fence, pool := volume.Status.Ownership.Fence, v.StoragePools[volume.Spec.Pool]
	why := fmt.Sprintf("gateway %s, the owner, is gone and has yet to be shut out", v.incarnationName(fence))
	if pool == nil {
		return why
	}
	if v.clients[pool.Meta.UID][fence] == nil {
		return why + ": which clients of Ceph it had is not recorded, so no other gateway can fence it; this ends when the same process is back " +
			"and releases the volume, or when the volume is deleted"
	}
	if job := v.Jobs[fenceID(pool, fence)]; job != nil && job.Result.Problem != "" {
		return fmt.Sprintf("%s; gateway %s failed to: %s", why, v.gatewayName(job.Gateway), job.Result.Problem)
	}
	return why
}

// decideFences fences the incarnations for which volumes of a pool wait, each once. It drops the clients of incarnations that are
// gone and for which nothing waits.
func (v *LeaderView) decideFences(pool *model.StoragePool, now time.Time, decision *Decision) {
	held, fencing := map[model.GatewayRef]bool{}, map[model.GatewayRef]bool{}
	for _, volume := range v.Volumes {
		if ownership := volume.Status.Ownership; volume.Spec.Pool == pool.Meta.Name {
			held[ownership.Owner], held[ownership.Next], held[ownership.Fence] = true, true, true
			fencing[ownership.Fence] = true
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(v.clients[pool.Meta.UID]), compareRefs) {
		record, job := v.clients[pool.Meta.UID][ref], v.Jobs[fenceID(pool, ref)]
		switch {
		case fencing[ref] && len(record.Open()) > 0:
			v.fence(pool, record, now, decision)
		case job != nil:
			decision.add(drop(pool, job))
		case !held[ref] && v.Standing(ref) == Gone:
			decision.add(&DropClients{Subject: about(pool), Record: record})
		}
	}
	for _, id := range names(v.Jobs) { // a job that was assigned late, or whose record a restored store has lost
		job := v.Jobs[id]
		if job.Action == model.JobFenceClients && job.PoolUID == pool.Meta.UID && !v.fencedBy(pool, id) {
			decision.add(drop(pool, job))
		}
	}
}

// fencedBy reports whether a job belongs to an existing record.
func (v *LeaderView) fencedBy(pool *model.StoragePool, id string) bool {
	for ref := range v.clients[pool.Meta.UID] {
		if fenceID(pool, ref) == id {
			return true
		}
	}
	return false
}

func (v *LeaderView) fence(pool *model.StoragePool, record *model.RadosClients, now time.Time, decision *Decision) {
	p := v.runJob(decision, pool, pool, model.Job{ID: fenceID(pool, record.Gateway), Action: model.JobFenceClients,
		Clients: record.Open(), ExpireSeconds: int64(v.BlocklistFor / time.Second)}, gatewayChoice{last: record.Gateway.Number}, now)
	if p.done == nil {
		return
	}
	a := &FenceClients{Subject: about(pool), Record: record, Clients: p.done.Clients}
	a.Event = &Event{true, reasonFencedOut, fmt.Sprintf("gateway %s is shut out of the pool", v.incarnationName(record.Gateway))}
	decision.add(a, drop(pool, p.done))
}
