package simtest

import (
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// checkServingInCeph: no other gateway can still write, and neither can this one if its epoch has ended.
func (w *Simulation) checkServingInCeph(p *process, uid string, epoch uint64) {
	v := w.volumeByUID(uid)
	if v == nil || !w.mayWrite(p, v) {
		return
	}
	if other := w.writer(v, p); other != nil {
		w.violate("%s serves %s in epoch %d, and %s may write it in epoch %d", p.ref, uid, epoch, other.ref,
			other.units[uid].serving)
	}
	if epoch <= w.over[uid] && !w.restored[uid] {
		w.violate("%s serves %s in epoch %d, which is over", p.ref, uid, epoch)
	}
}

// checkWrite: a write never belongs to an older epoch than an earlier write.
func (w *Simulation) checkWrite(p *process, v *model.Volume) {
	uid := v.Meta.UID
	epoch := p.units[uid].serving
	if epoch < w.ceph.written[uid] && !w.restored[uid] {
		w.violate("%s writes to %s in epoch %d after epoch %d", p.ref, uid, epoch, w.ceph.written[uid])
	}
	w.ceph.written[uid] = epoch
	if other := w.writer(v, p); other != nil {
		w.violate("%s writes to %s, and so may %s", p.ref, uid, other.ref)
	}
}

// checkOwnInCeph: an epoch ends only when no gateway can write in it any more.
func (w *Simulation) checkOwnInCeph(v *model.Volume, was, next model.Ownership) {
	uid := v.Meta.UID
	for _, client := range strings.Fields(next.FencedClients) {
		if !w.ceph.blocklisted[client] {
			w.violate("%s of %s is said to be fenced and is not", client, uid)
		}
	}
	begins := next.Epoch > was.Epoch && next.State == model.Opening
	if w.restored[uid] || !begins && next.State != model.Orphaned && next.State != model.Unowned {
		return
	}
	if was.State == model.Fencing && !v.Meta.Deleting() {
		w.checkShutOut(uid, was)
	}
	if p := w.writer(v, nil); p != nil {
		w.violate("epoch %d of %s is taken for over, and %s may write in it", was.Epoch, uid, p.ref)
	}
	w.over[uid] = was.Epoch
}

// checkShutOut: a gateway that counts as fenced has reported the release itself, or all of its clients are known and blocklisted.
func (w *Simulation) checkShutOut(uid string, was model.Ownership) {
	p := w.process(was.Fence)
	if u := p.units[uid]; u != nil && u.final >= was.Epoch-1 {
		return
	}
	record := w.store.clients[was.Fence]
	if record == nil {
		w.violate("%s is taken for shut out of %s, and its clients are not known", was.Fence, uid)
		return
	}
	for _, client := range append(record.All(), p.rados.used...) {
		if !w.ceph.blocklisted[client] {
			w.violate("%s is taken for shut out of %s, and has %s", was.Fence, uid, client)
		}
	}
}

// checkNoted: every client that is recorded as fenced is blocklisted.
func (w *Simulation) checkNoted(clients []string) {
	for _, client := range clients {
		if !w.ceph.blocklisted[client] {
			w.violate("%s is noted to be fenced and is not", client)
		}
	}
}

// checkFence: one job fences an incarnation from a pool, for all volumes that wait, and another gateway executes it.
func (w *Simulation) checkFence(a *decide.GiveJob) {
	if a.Kind != model.KindStoragePool {
		w.violate("%s %s is fenced for by a job of its own", a.Kind, a.Name)
	}
	others := 0
	for id, j := range w.store.jobs {
		if j.Action == model.JobFenceClients && id != a.Job.ID && slices.Equal(j.Clients, a.Job.Clients) {
			others++
		}
	}
	if others > 0 {
		w.violate("%v are fenced by %d jobs", a.Job.Clients, others+1)
	}
	if w.faulty {
		return
	}
	for _, client := range a.Job.Clients {
		if w.fences[client]++; w.fences[client] > maxFences {
			w.violate("%s is fenced again and again", client)
		}
	}
}

// checkRolledBack: no gateway has a volume open while its data changes.
func (w *Simulation) checkRolledBack(v *model.Volume) {
	if v == nil {
		return
	}
	if p := w.writer(v, nil); p != nil {
		w.violate("%s is rolled back while %s serves it", v.Meta.Name, p.ref)
	}
}

// checkDeletedInCeph: an image is deleted only when no gateway has it open. An image whose adoption failed goes to the trash at
// most.
func (w *Simulation) checkDeletedInCeph(v *model.Volume, j *model.Job) {
	if v == nil || w.restored[v.Meta.UID] {
		return
	}
	if p := w.writer(v, nil); p != nil {
		w.violate("the image of %s is deleted while %s serves it", v.Meta.Name, p.ref)
	}
	if j.TrashSeconds == 0 && neverAdopted(v) {
		w.violate("the image that %s could not adopt is deleted", v.Meta.Name)
	}
}

// maxFences bounds the fences of one client once all faults are over.
const maxFences = 3

// checkRestOfCeph: every record belongs to a gateway, and nothing waits without need.
func (w *Simulation) checkRestOfCeph() {
	held := map[model.GatewayRef]bool{}
	for _, v := range w.volumes() {
		o := v.Status.Ownership
		held[o.Owner], held[o.Next], held[o.Fence] = true, true, true
		if !inCeph(v) || v.Meta.Deleting() {
			continue
		}
		if v.Status.RollBack != nil {
			w.violate("%s was never rolled back", v.Meta.Name)
		}
		if v.Status.SharesWith != "" {
			w.violate("%s shares blocks with %s still", v.Meta.Name, v.Status.SharesWith)
		}
	}
	for ref := range w.store.clients {
		if p := w.process(ref); !held[ref] && (!p.alive || w.gateway(p.name) == nil) {
			w.violate("the clients of %s are recorded still", ref)
		}
	}
	for id, j := range w.store.jobs {
		if j.Action == model.JobFenceClients {
			w.violate("job %s has not ended: %s", id, j.Result.Problem)
		}
	}
}

// cannotBeFenced reports whether a volume rightly finds no owner, because the restored store has lost which clients could write
// it.
func (w *Simulation) cannotBeFenced(v *model.Volume) bool {
	uid, o := v.Meta.UID, v.Status.Ownership
	if !inCeph(v) || !w.restored[uid] {
		return false
	}
	if o.State == model.Fencing {
		return w.store.clients[o.Fence] == nil
	}
	if p := w.process(o.Owner); o.State == model.Owned && p != nil && !p.alive && w.store.clients[o.Owner] == nil {
		return true
	}
	for _, r := range w.store.records {
		if r.Volume != nil && r.Volume.UID == uid && r.Volume.Epoch > o.Epoch && r.Volume.State != model.VolumeServing {
			return true
		}
	}
	return false
}
