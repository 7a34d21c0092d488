// Package fabric is the controller of Fabrics.
package fabric

import (
	"context"

	"google.golang.org/grpc"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/controlplane"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=fabrics,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=fabrics/status;fabrics/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection grpc.ClientConnInterface) error {
	return mirror.Setup(mgr, mirror.Kind[*v1alpha1.Fabric, *pb.Fabric]{
		Noun: controlplane.Fabrics(connection),
		Want: want, Show: show,
	}, nil)
}

func want(_ context.Context, r *v1alpha1.Fabric, _ *mirror.SecretReader) (*pb.Fabric, error) {
	spec := &pb.FabricSpec{Subnets: r.Spec.Subnets, Switches: r.Spec.Switches}
	if len(spec.Switches) == 0 {
		spec.Switches = []string{mirror.Name(r)}
	}
	for _, link := range r.Spec.Links {
		spec.Links = append(spec.Links, &pb.FabricLink{A: link.A, B: link.B, Cost: link.Cost})
	}
	return &pb.Fabric{Spec: spec}, nil
}

func show(r *v1alpha1.Fabric, have *pb.Fabric) {
	r.Status.Portals, r.Status.Hosts = have.GetStatus().GetPortals(), have.GetStatus().GetHosts()
}
