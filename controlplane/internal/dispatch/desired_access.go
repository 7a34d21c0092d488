package dispatch

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// access says who may log in to a target and what each is shown: placement's answer for a cluster of this target alone, which
// keeps path set and owners as they are.
func (m *maker) access(t *model.Target) []*pb.DesiredAccess {
	assignment := placement.Plan(m.around(t))
	shown := map[string][]placement.PortalRef{}
	for _, access := range assignment.Access {
		shown[access.Host] = access.Portals
	}
	var all []*pb.DesiredAccess
	for _, name := range t.Spec.Hosts {
		host := m.objects.Hosts[name]
		if host == nil || host.Meta.Deleting() {
			continue
		}
		message := &pb.DesiredAccess{HostUid: host.Meta.UID}
		for _, portal := range shown[name] {
			message.Portals = append(message.Portals, fmt.Sprintf("%s,%d", portal.Address, portal.PortalGroupTag))
		}
		message.Redirect = m.hides(shown[name])
		all = append(all, message)
	}
	return all
}

// hides says whether a host that is shown these portals should be sent away from some other portal of this gateway.
func (m *maker) hides(portals []placement.PortalRef) bool {
	if len(portals) == 0 {
		return false
	}
	for _, own := range m.gateway.Spec.Portals {
		tag := m.gateway.Status.PortalGroupTags[own.Fabric]
		if !slices.ContainsFunc(portals, func(p placement.PortalRef) bool {
			return p.Gateway == m.self.Number && p.PortalGroupTag == tag && p.Address == own.Advertised
		}) {
			return true
		}
	}
	return false
}

// around is the target with what Plan needs to know for it.
func (m *maker) around(t *model.Target) placement.Cluster {
	cluster := placement.Cluster{Policy: placement.Policy{MaxMoves: -1}}
	for _, fabric := range m.objects.Fabrics {
		cluster.Fabrics = append(cluster.Fabrics, placement.FabricFrom(fabric))
	}
	for _, number := range t.Status.PathSet {
		if gateway := m.objects.GatewayByNumber(number); gateway != nil {
			cluster.Gateways = append(cluster.Gateways, placement.GatewayFrom(gateway, 0))
		}
	}
	target := placement.TargetFrom(t)
	target.Paths = int32(len(t.Status.PathSet))
	target.Volumes = nil
	pools := map[string]bool{} // where volumes are is all that paths go by: one of each pool says that
	for _, lun := range t.Spec.Luns {
		if volume := m.objects.Volumes[lun.Volume]; volume != nil && !pools[volume.Spec.Pool] {
			pools[volume.Spec.Pool] = true
			target.Volumes = append(target.Volumes, lun.Volume)
			cluster.Volumes = append(cluster.Volumes,
				placement.VolumeFrom(volume, m.objects.StoragePools[volume.Spec.Pool], 0))
		}
	}
	for _, name := range t.Spec.Hosts {
		if host := m.objects.Hosts[name]; host != nil {
			cluster.Hosts = append(cluster.Hosts, placement.HostFrom(host))
		}
	}
	cluster.Targets = []placement.Target{target}
	return cluster
}
