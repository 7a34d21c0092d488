// Package target is the controller of Targets.
package target

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=targets,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=targets/status;targets/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection mirror.ControlPlane) error {
	return mirror.Setup(mgr, connection.Findings, mirror.Managed[*v1alpha1.Target, *pb.Target]{
		Noun: mirror.Targets(connection),
		Want: want, Show: convert.ShowTarget, HasReadyCondition: true,
	}, nil)
}

func want(_ context.Context, r *v1alpha1.Target, _ *mirror.SecretReader) (*pb.Target, error) {
	return &pb.Target{Spec: convert.TargetSpec(r)}, nil
}
