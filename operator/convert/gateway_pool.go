package convert

import (
	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// GatewayPoolSpec returns the specification of a gateway pool. All other fields of the resource concern pods, which only the
// operator makes.
func GatewayPoolSpec(r *v1alpha1.GatewayPool) *pb.GatewayPoolSpec {
	spec := &pb.GatewayPoolSpec{MaxSessionsPerGateway: r.Spec.MaxSessionsPerGateway}
	for _, portal := range r.Spec.Portals {
		spec.Fabrics = append(spec.Fabrics, portal.Fabric)
	}
	return spec
}

// ShowGatewayPool copies the status of a gateway pool.
func ShowGatewayPool(r *v1alpha1.GatewayPool, have *pb.GatewayPool) {
	r.Status.ImbalancePermille = have.GetStatus().GetImbalancePermille()
}

func gatewayPoolOf(have *pb.GatewayPool) *v1alpha1.GatewayPool {
	r := &v1alpha1.GatewayPool{Spec: v1alpha1.GatewayPoolSpec{MaxSessionsPerGateway: have.GetSpec().GetMaxSessionsPerGateway()}}
	for _, fabric := range have.GetSpec().GetFabrics() {
		r.Spec.Portals = append(r.Spec.Portals, v1alpha1.PortalTemplate{Fabric: fabric})
	}
	ShowGatewayPool(r, have)
	r.Status.Replicas, r.Status.ReadyReplicas = have.GetStatus().GetGateways(), have.GetStatus().GetGatewaysReady()
	return r
}
