// Package snapshot is the controller of Snapshots. rollback.go makes a volume what it was at one.
package snapshot

import (
	"context"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/controlplane"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=snapshots,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=snapshots/status;snapshots/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection grpc.ClientConnInterface) error {
	s := &snapshots{
		snapshots: pb.NewSnapshotServiceClient(connection), volumes: pb.NewVolumeServiceClient(connection),
		events: pb.NewEventServiceClient(connection),
	}
	return mirror.Setup(mgr, mirror.Kind[*v1alpha1.Snapshot, *pb.Snapshot]{
		Noun: controlplane.Snapshots(connection),
		Want: want, Show: show, Judged: true, HoldsData: true, After: s.rollBack,
	}, nil)
}

func want(_ context.Context, r *v1alpha1.Snapshot, _ *mirror.SecretReader) (*pb.Snapshot, error) {
	policy := pb.ReclaimPolicy_RECLAIM_POLICY_DELETE
	if r.Spec.ReclaimPolicy == v1alpha1.ReclaimRetain {
		policy = pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN
	}
	return &pb.Snapshot{Spec: &pb.SnapshotSpec{
		Volume: mirror.NameIn(r.Namespace, r.Spec.Volume), ReclaimPolicy: policy,
	}}, nil
}

func show(r *v1alpha1.Snapshot, have *pb.Snapshot) {
	r.Status.Size, r.Status.TakenTime = nil, nil
	if size := have.GetStatus().GetSizeBytes(); size > 0 {
		r.Status.Size = resource.NewQuantity(size, resource.BinarySI)
	}
	if at := have.GetStatus().GetTakenTime(); at != nil {
		taken := metav1.NewTime(at.AsTime())
		r.Status.TakenTime = &taken
	}
}
