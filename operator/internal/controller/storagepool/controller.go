// Package storagepool is the controller of StoragePools.
package storagepool

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/controlplane"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=storagepools,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=storagepools/status;storagepools/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager; the Secrets that resources name are read again after each `secretsEvery`.
func Setup(mgr manager.Manager, connection grpc.ClientConnInterface, secretsEvery time.Duration) error {
	return mirror.Setup(mgr, mirror.Kind[*v1alpha1.StoragePool, *pb.StoragePool]{
		Noun: controlplane.StoragePools(connection),
		Want: want, Hide: hide, Show: show, Judged: true,
		SecretVersions: func(r *v1alpha1.StoragePool) *string { return &r.Status.SecretVersions },
		SecretsEvery:   secretsEvery,
	}, nil)
}

func want(ctx context.Context, r *v1alpha1.StoragePool, secrets *mirror.SecretReader) (*pb.StoragePool, error) {
	spec := &pb.StoragePoolSpec{WarnPercent: r.Spec.WarnPercent, GatewayPools: r.Spec.GatewayPools,
		AdoptableImages: r.Spec.AdoptableImages, Adoptions: r.Spec.Adoptions}
	if local := r.Spec.Local; local != nil {
		spec.Kind = &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{
			Node: local.Node, Directory: local.Directory, Devices: local.Devices,
		}}
		return &pb.StoragePool{Spec: spec}, nil
	}
	rbd := r.Spec.Rbd
	name := types.NamespacedName{Namespace: rbd.KeySecretRef.Namespace, Name: rbd.KeySecretRef.Name}
	key, err := secrets.Read(ctx, "spec.rbd.keySecretRef", name, rbd.KeySecretRef.Key)
	if err != nil {
		return nil, err
	}
	spec.Kind = &pb.StoragePoolSpec_Rbd{Rbd: &pb.RbdPool{
		Monitors: rbd.Monitors, User: rbd.User, Key: strings.TrimSpace(key), Pool: rbd.Pool,
		RadosNamespace: rbd.RadosNamespace, DataPool: rbd.DataPool,
	}}
	return &pb.StoragePool{Spec: spec}, nil
}

func hide(pool *pb.StoragePool) {
	if rbd := pool.GetSpec().GetRbd(); rbd != nil {
		rbd.Key = ""
	}
}

func show(r *v1alpha1.StoragePool, have *pb.StoragePool) {
	s := have.GetStatus()
	r.Status.CapacityBytes, r.Status.UsedBytes, r.Status.Volumes = s.GetCapacityBytes(), s.GetUsedBytes(), s.GetVolumes()
	r.Status.SnapshotsSupported, r.Status.OrphanedImageCount = s.GetSnapshotsSupported(), s.GetOrphanedImageCount()
	r.Status.OrphanedImages = s.GetOrphanedImages()
	r.Status.MissingImages, r.Status.MissingImageCount = s.GetMissingImages(), s.GetMissingImageCount()
	r.Status.Marker, r.Status.MarkerAdoptions = s.GetMarker(), s.GetMarkerAdoptions()
	r.Status.MaxVolumeBytes = s.GetMaxVolumeBytes()
}
