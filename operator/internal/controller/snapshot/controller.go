// Package snapshot is the controller of Snapshots. rollback.go rolls a volume back to one.
package snapshot

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=snapshots,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=snapshots/status;snapshots/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection mirror.ControlPlane) error {
	s := &snapshots{
		snapshots: pb.NewSnapshotServiceClient(connection), volumes: pb.NewVolumeServiceClient(connection),
		events: pb.NewEventServiceClient(connection),
	}
	return mirror.Setup(mgr, connection.Findings, mirror.Managed[*v1alpha1.Snapshot, *pb.Snapshot]{
		Noun: mirror.Snapshots(connection),
		Want: want, Show: convert.ShowSnapshot, HasReadyCondition: true, HoldsData: true, After: s.rollBack,
	}, nil)
}

func want(_ context.Context, r *v1alpha1.Snapshot, _ *mirror.SecretReader) (*pb.Snapshot, error) {
	spec, err := convert.SnapshotSpec(r)
	return &pb.Snapshot{Spec: spec}, err
}
