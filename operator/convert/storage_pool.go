package convert

import (
	"errors"
	"strings"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// StoragePoolSpec returns the specification of a storage pool, with the key from its Secret.
func StoragePoolSpec(r *v1alpha1.StoragePool, secret SecretReader) (*pb.StoragePoolSpec, error) {
	spec := &pb.StoragePoolSpec{WarnPercent: r.Spec.WarnPercent, GatewayPools: r.Spec.GatewayPools,
		AdoptableImages: r.Spec.AdoptableImages, Adoptions: r.Spec.Adoptions}
	local, rbd := r.Spec.Local, r.Spec.Rbd
	switch {
	case (local == nil) == (rbd == nil):
		return nil, errors.New("spec: a pool is exactly one of local and rbd")
	case local != nil:
		spec.Kind = &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{
			Node: local.Node, Directory: local.Directory, Devices: local.Devices,
		}}
		return spec, nil
	}
	ref := rbd.KeySecretRef
	key, err := secret("spec.rbd.keySecretRef", SecretKey{ref.Namespace, ref.Name, ref.Key})
	if err != nil {
		return nil, err
	}
	spec.Kind = &pb.StoragePoolSpec_Rbd{Rbd: &pb.RbdPool{
		Monitors: rbd.Monitors, User: rbd.User, Key: strings.TrimSpace(key), Pool: rbd.Pool,
		RadosNamespace: rbd.RadosNamespace, DataPool: rbd.DataPool,
	}}
	return spec, nil
}

// ShowStoragePool copies the status of a storage pool.
func ShowStoragePool(r *v1alpha1.StoragePool, have *pb.StoragePool) {
	s := have.GetStatus()
	r.Status.CapacityBytes, r.Status.UsedBytes, r.Status.Volumes = s.GetCapacityBytes(), s.GetUsedBytes(), s.GetVolumes()
	r.Status.SnapshotsSupported, r.Status.OrphanedImageCount = s.GetSnapshotsSupported(), s.GetOrphanedImageCount()
	r.Status.OrphanedImages = s.GetOrphanedImages()
	r.Status.MissingImages, r.Status.MissingImageCount = s.GetMissingImages(), s.GetMissingImageCount()
	r.Status.Marker, r.Status.MarkerAdoptions = s.GetMarker(), s.GetMarkerAdoptions()
	r.Status.MaxVolumeBytes = s.GetMaxVolumeBytes()
}

// storagePoolOf omits the reference to the Secret, which the control plane does not know.
func storagePoolOf(have *pb.StoragePool) *v1alpha1.StoragePool {
	spec := have.GetSpec()
	r := &v1alpha1.StoragePool{Spec: v1alpha1.StoragePoolSpec{WarnPercent: spec.GetWarnPercent(), GatewayPools: spec.GetGatewayPools(),
		AdoptableImages: spec.GetAdoptableImages(), Adoptions: spec.GetAdoptions()}}
	if local := spec.GetLocal(); local != nil {
		r.Spec.Local = &v1alpha1.LocalPool{Node: local.GetNode(), Directory: local.GetDirectory(), Devices: local.GetDevices()}
	}
	if rbd := spec.GetRbd(); rbd != nil {
		r.Spec.Rbd = &v1alpha1.RbdPool{Monitors: rbd.GetMonitors(), User: rbd.GetUser(), Pool: rbd.GetPool(),
			RadosNamespace: rbd.GetRadosNamespace(), DataPool: rbd.GetDataPool()}
	}
	ShowStoragePool(r, have)
	return r
}
