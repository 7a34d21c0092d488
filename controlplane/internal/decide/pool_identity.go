package decide

import (
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Reasons of conditions that explain why data is not served or changed.
const (
	// reasonUnidentified: the storage that gateways find in place of the pool may be other storage.
	reasonUnidentified = model.ReasonPoolNotIdentified
	// reasonImageMissing: the volume has an image, but the pool does not contain it.
	reasonImageMissing = model.ReasonImageMissing
)

// identityProblem returns why a pool may be other storage than before, from gateways with a stream; empty: one of them has
// identified it, or none has reported. Nothing is created or deleted in such a pool.
func (v *LeaderView) identityProblem(pool *model.StoragePool) string {
	if pool == nil {
		return ""
	}
	if found, _ := v.poolReports(pool); found != nil && found.Unidentified {
		return found.Problem
	}
	return ""
}

// poolMarker stores the pool's first marker, or the marker of a replacement that was confirmed since.
func (v *LeaderView) poolMarker(pool *model.StoragePool, found *model.PoolReport) (Action, bool) {
	if found == nil || found.Unidentified || found.Marker == "" || found.Adoptions > uint32(pool.Spec.Adoptions) {
		return nil, false
	}
	marks := func(p *model.StoragePool) bool {
		return p.Status.Marker == "" || found.Marker != p.Status.Marker && found.Adoptions > uint32(p.Status.MarkerAdoptions)
	}
	if !marks(pool) {
		return nil, false
	}
	return modify(pool, func(o model.Object) bool {
		p := o.(*model.StoragePool)
		if !marks(p) {
			return false
		}
		p.Status.Marker, p.Status.MarkerAdoptions = found.Marker, int32(found.Adoptions)
		return true
	}, &Event{false, "Marked", fmt.Sprintf("gateway %s has marked the pool's storage: marker %s, %d confirmed replacements",
		v.gatewayName(found.Gateway.Number), found.Marker, found.Adoptions)}), true
}

// unopenable returns why no gateway can open the volume; an empty reason: no gateway reported a failure.
func (v *LeaderView) unopenable(volume *model.Volume) (reason, message string) {
	pool := v.StoragePools[volume.Spec.Pool]
	if pool == nil || volume.Status.CapacityBytes == 0 {
		return "", ""
	}
	if doubt := v.identityProblem(pool); doubt != "" {
		return reasonUnidentified, doubt
	}
	ownership := volume.Status.Ownership
	// An owner that is gone stays the owner while no other gateway can open the volume.
	if (ownership.State == model.Owned || ownership.State == model.Moving) && v.Standing(ownership.Owner) != Gone {
		return "", ""
	}
	reports := v.reports[volume.Meta.UID]
	for _, number := range slices.Sorted(maps.Keys(reports)) {
		r := reports[number]
		if by, present := v.connected(number); present && by == r.Gateway && r.State == model.VolumeFailed && r.Epoch == ownership.Epoch &&
			r.Reason != "" {
			reason, message = reasonFailed, fmt.Sprintf("gateway %s could not open it: %s", v.gatewayName(number), r.Reason)
			return reason, message
		}
	}
	if image := model.VolumeLocation(volume); slices.Contains(pool.Status.MissingImages, image) {
		return reasonImageMissing, fmt.Sprintf("pool %s does not hold its image, %s: restore the image, or delete the volume",
			pool.Meta.Name, image)
	}
	return "", ""
}
