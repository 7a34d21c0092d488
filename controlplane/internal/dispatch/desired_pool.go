package dispatch

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// maxMarker bounds the id of a pool's marker, in bytes. Gateways make it of 32 digits.
const maxMarker = 64

// poolIdentity is what gateways compare a pool's marker with. Until one has reported a marker, it names the images that the pool must
// have: a pool that is older than markers is marked only where all of them exist.
func (m *maker) poolIdentity(pool *model.StoragePool) *pb.PoolIdentity {
	identity := &pb.PoolIdentity{Marker: pool.Status.Marker, Adoptions: uint32(pool.Status.MarkerAdoptions),
		ConfirmedAdoptions: uint32(pool.Spec.Adoptions)}
	if pool.Status.Marker != "" {
		return identity
	}
	for _, volume := range m.objects.Volumes {
		if volume.Spec.Pool == pool.Meta.Name && volume.Status.CapacityBytes > 0 && !volume.Meta.Deleting() {
			identity.Images = append(identity.Images, store.VolumeLocation(volume))
		}
	}
	slices.Sort(identity.Images)
	identity.Images = identity.Images[:min(len(identity.Images), model.MaxMarkerImages)]
	return identity
}
