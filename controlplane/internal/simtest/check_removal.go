package simtest

import (
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// checkVolumeGoes: a volume is removed after its image, its owner and all objects that refer to it.
func (w *Simulation) checkVolumeGoes(v *model.Volume) {
	name := v.Meta.Name
	if v.Spec.ReclaimPolicy == model.ReclaimRetain || v.Spec.ReclaimPolicy == model.ReclaimDelete && neverAdopted(v) {
		w.kept[model.VolumeLocation(v)] = true
	} else if w.images[model.VolumeLocation(v)] != 0 {
		w.violate("volume %s was removed before its image", name)
	}
	// After the restore of a backup, an owner that has yet to connect is unknown, and an owner that counts as dead is not heard.
	// The user requested the removal, and if the image was deleted, that was done under the lock.
	if by := w.servedBy(v.Meta.UID); by != nil && !w.restored[v.Meta.UID] && !w.lost[v.Meta.UID] {
		w.violate("volume %s was removed while %s serves it", name, by.ref)
	}
	if who := w.referrers(name); len(who) > 0 {
		w.violate("volume %s was removed while it is held by %s", name, strings.Join(who, ", "))
	}
}

// neverAdopted reports whether a volume has yet to adopt its image, which is older than the volume.
func neverAdopted(v *model.Volume) bool {
	return v.Status.CapacityBytes == 0 && v.Spec.Source.Image != ""
}

// checkSnapshotGoes: a snapshot is removed after its image, and after the volumes that were made from it.
func (w *Simulation) checkSnapshotGoes(s *model.Snapshot) {
	if w.images[model.SnapshotLocation(s)] != 0 {
		w.violate("snapshot %s was removed before its image", s.Meta.Name)
	}
	if w.madeFrom(s.Meta.Name) {
		w.violate("snapshot %s was removed while it is held by a volume made from it", s.Meta.Name)
	}
}

// checkGatewayGoes: a gateway is removed once it has nothing, as far as was known when that was decided. Changes that were stored
// in between are corrected; checkRemoved verifies that.
func (w *Simulation) checkGatewayGoes(g *model.Gateway, logRead int) {
	number, known := g.Status.Number, w.store.log[logRead-1].version
	for _, v := range w.volumes() {
		if o := v.Status.Ownership; v.Meta.Version <= known && o.Owner.Number == number && o.State != model.Acquiring && !w.restored[v.Meta.UID] {
			w.violate("gateway %s was removed while it owns %s", g.Meta.Name, v.Meta.Name)
		}
	}
	for _, t := range all[*model.Target](w) {
		if t.Meta.Version <= known && slices.Contains(t.Status.PathSet, number) {
			w.violate("gateway %s was removed while it exports %s", g.Meta.Name, t.Meta.Name)
		}
	}
}

// checkNotRemoved: a leader that knows of a gateway's removal assigns it nothing.
func (w *Simulation) checkNotRemoved(v *model.Volume, next model.Ownership, logRead int) {
	was := v.Status.Ownership
	if w.restored[v.Meta.UID] && next.State == model.Owned && next.Epoch > was.Epoch {
		return // it reported that it serves, which a restored store did not know: this is adopted, and then fenced
	}
	for _, ref := range []model.GatewayRef{next.Owner, next.Next} {
		at, removed := w.removed[ref.Number]
		if removed && logRead >= at && ref != was.Owner && ref != was.Next {
			w.violate("%s was given to gateway %d, which was removed", v.Meta.Name, ref.Number)
		}
	}
}

// checkSnapshotTaken: a volume's owner takes its snapshots, or any gateway while there is no owner.
func (w *Simulation) checkSnapshotTaken(p *process, uid string) {
	if by := w.servedBy(uid); by != nil && by != p && p.units[uid] != nil && p.units[uid].received.Epoch != 0 {
		w.violate("%s took a snapshot of %s, which %s serves", p.ref, uid, by.ref)
	}
}
