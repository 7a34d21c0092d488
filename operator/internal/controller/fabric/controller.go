// Package fabric is the controller of Fabrics.
package fabric

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=fabrics,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=fabrics/status;fabrics/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection mirror.ControlPlane) error {
	return mirror.Setup(mgr, connection.Findings, mirror.Managed[*v1alpha1.Fabric, *pb.Fabric]{
		Noun: mirror.Fabrics(connection),
		Want: want, Show: convert.ShowFabric,
	}, nil)
}

func want(_ context.Context, r *v1alpha1.Fabric, _ *mirror.SecretReader) (*pb.Fabric, error) {
	return &pb.Fabric{Spec: convert.FabricSpec(r)}, nil
}
