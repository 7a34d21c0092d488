package desired

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// poolIdentity returns the identity with which gateways compare a pool's marker. Until a gateway has reported a marker, it names
// the images that the pool must have: a pool that is older than markers is marked only if all of them exist. A volume that is
// being deleted counts. Otherwise the directory below a missing mount would be marked, the deletion would succeed there, and the
// image would remain.
func (m *maker) poolIdentity(pool *model.StoragePool) *pb.PoolIdentity {
	identity := &pb.PoolIdentity{Marker: pool.Status.Marker, Adoptions: uint32(pool.Status.MarkerAdoptions),
		ConfirmedAdoptions: uint32(pool.Spec.Adoptions)}
	if pool.Status.Marker != "" {
		return identity
	}
	for _, volume := range m.objects.Volumes {
		if volume.Spec.Pool == pool.Meta.Name && volume.Status.CapacityBytes > 0 {
			identity.Images = append(identity.Images, model.VolumeLocation(volume))
		}
	}
	slices.Sort(identity.Images)
	identity.Images = identity.Images[:min(len(identity.Images), model.MaxMarkerImages)]
	return identity
}
