package convert

import (
	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// FabricSpec returns the specification of a fabric.
func FabricSpec(r *v1alpha1.Fabric) *pb.FabricSpec {
	spec := &pb.FabricSpec{Subnets: r.Spec.Subnets, Switches: r.Spec.Switches}
	if len(spec.Switches) == 0 {
		spec.Switches = []string{Name(r)}
	}
	for _, link := range r.Spec.Links {
		spec.Links = append(spec.Links, &pb.FabricLink{A: link.A, B: link.B, Cost: link.Cost})
	}
	return spec
}

// ShowFabric copies the status of a fabric.
func ShowFabric(r *v1alpha1.Fabric, have *pb.Fabric) {
	r.Status.Portals, r.Status.Hosts = have.GetStatus().GetPortals(), have.GetStatus().GetHosts()
}

func fabricOf(have *pb.Fabric) *v1alpha1.Fabric {
	r := &v1alpha1.Fabric{Spec: v1alpha1.FabricSpec{Subnets: have.GetSpec().GetSubnets(), Switches: have.GetSpec().GetSwitches()}}
	for _, link := range have.GetSpec().GetLinks() {
		r.Spec.Links = append(r.Spec.Links, v1alpha1.FabricLink{A: link.GetA(), B: link.GetB(), Cost: link.GetCost()})
	}
	ShowFabric(r, have)
	return r
}
