// Package target is the controller of Targets.
package target

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/controlplane"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=targets,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=targets/status;targets/finalizers,verbs=get;update;patch

// iqnStart begins the name of a target that is given none, as in the control plane.
const iqnStart = "iqn.2026-11.dev.sluice:"

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection grpc.ClientConnInterface) error {
	return mirror.Setup(mgr, mirror.Kind[*v1alpha1.Target, *pb.Target]{
		Noun: controlplane.Targets(connection),
		Want: want, Show: show, Judged: true,
	}, nil)
}

func want(_ context.Context, r *v1alpha1.Target, _ *mirror.SecretReader) (*pb.Target, error) {
	spec := &pb.TargetSpec{Iqn: r.Spec.IQN, GatewayPool: r.Spec.GatewayPool, Paths: r.Spec.Paths}
	if spec.Iqn == "" {
		spec.Iqn = iqnStart + mirror.Name(r)
	}
	for _, lun := range r.Spec.Luns {
		spec.Luns = append(spec.Luns, &pb.TargetLun{
			Id: lun.ID, Volume: mirror.NameIn(r.Namespace, lun.Volume), ReadOnly: lun.ReadOnly,
		})
	}
	for _, host := range r.Spec.Hosts {
		spec.Hosts = append(spec.Hosts, mirror.NameIn(r.Namespace, host))
	}
	return &pb.Target{Spec: spec}, nil
}

func show(r *v1alpha1.Target, have *pb.Target) {
	r.Status.IQN, r.Status.Sessions = have.GetSpec().GetIqn(), have.GetStatus().GetSessions()
	r.Status.Paths = nil
	var addresses []string
	for _, path := range have.GetStatus().GetPaths() {
		shown := v1alpha1.TargetPath{
			Gateway: path.GetGateway(), TargetPortGroup: int64(path.GetTargetPortGroup()), Applied: path.GetApplied(),
		}
		for _, port := range path.GetPorts() {
			shown.Ports = append(shown.Ports, v1alpha1.TargetPort{
				Address: port.GetAddress(), Fabric: port.GetFabric(), PortalGroupTag: int64(port.GetPortalGroupTag()),
				RelativeTargetPortID: int64(port.GetRelativeTargetPortId()),
			})
			addresses = append(addresses, port.GetAddress())
		}
		r.Status.Paths = append(r.Status.Paths, shown)
	}
	r.Status.Portals = strings.Join(addresses, ",")
}
