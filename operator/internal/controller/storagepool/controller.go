// Package storagepool is the controller of StoragePools.
package storagepool

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=storagepools,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=storagepools/status;storagepools/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager; the Secrets that resources name are read again after each `secretsEvery`.
func Setup(mgr manager.Manager, connection mirror.ControlPlane, secretsEvery time.Duration) error {
	return mirror.Setup(mgr, connection.Findings, mirror.Managed[*v1alpha1.StoragePool, *pb.StoragePool]{
		Noun: mirror.StoragePools(connection),
		Want: want, Hide: hide, Show: convert.ShowStoragePool, HasReadyCondition: true,
		SecretVersions: func(r *v1alpha1.StoragePool) *string { return &r.Status.SecretVersions },
		SecretsEvery:   secretsEvery,
	}, nil)
}

func want(ctx context.Context, r *v1alpha1.StoragePool, secrets *mirror.SecretReader) (*pb.StoragePool, error) {
	spec, err := convert.StoragePoolSpec(r, secrets.Of(ctx))
	if err != nil {
		return nil, err
	}
	return &pb.StoragePool{Spec: spec}, nil
}

func hide(pool *pb.StoragePool) {
	if rbd := pool.GetSpec().GetRbd(); rbd != nil {
		rbd.Key = ""
	}
}
