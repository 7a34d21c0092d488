package convert

import (
	"strings"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// iqnStart is the prefix of the default name of a target, as in the control plane.
const iqnStart = "iqn.2026-11.dev.sluice:"

// TargetSpec returns the specification of a target.
func TargetSpec(r *v1alpha1.Target) *pb.TargetSpec {
	spec := &pb.TargetSpec{Iqn: r.Spec.IQN, GatewayPool: r.Spec.GatewayPool, Paths: r.Spec.Paths}
	if spec.Iqn == "" {
		spec.Iqn = iqnStart + Name(r)
	}
	for _, lun := range r.Spec.Luns {
		spec.Luns = append(spec.Luns, &pb.TargetLun{Id: lun.ID, Volume: NameIn(r.Namespace, lun.Volume), ReadOnly: lun.ReadOnly})
	}
	for _, host := range r.Spec.Hosts {
		spec.Hosts = append(spec.Hosts, NameIn(r.Namespace, host))
	}
	return spec
}

// ShowTarget copies the status of a target.
func ShowTarget(r *v1alpha1.Target, have *pb.Target) {
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

func targetOf(have *pb.Target, at resourceKey) *v1alpha1.Target {
	spec := have.GetSpec()
	r := &v1alpha1.Target{Spec: v1alpha1.TargetSpec{IQN: spec.GetIqn(), GatewayPool: spec.GetGatewayPool(), Paths: spec.GetPaths()}}
	for _, lun := range spec.GetLuns() {
		r.Spec.Luns = append(r.Spec.Luns, v1alpha1.TargetLun{ID: lun.GetId(), Volume: at.relative(lun.GetVolume()), ReadOnly: lun.GetReadOnly()})
	}
	for _, host := range spec.GetHosts() {
		r.Spec.Hosts = append(r.Spec.Hosts, at.relative(host))
	}
	ShowTarget(r, have)
	return r
}
