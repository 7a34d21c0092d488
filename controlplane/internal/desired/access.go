package desired

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// access returns the hosts that may log in to a target, and the portals that each is shown.
func (m *maker) access(t *model.Target) []*pb.DesiredAccess {
	shown := m.objects.Access(t)
	var all []*pb.DesiredAccess
	for _, name := range t.Spec.Hosts {
		host := m.objects.Hosts[name]
		if host == nil || host.Meta.Deleting() {
			continue
		}
		message := &pb.DesiredAccess{HostUid: host.Meta.UID, MutualChapUsername: host.Spec.MutualChapUsername(t.Spec.IQN)}
		for _, portal := range shown[name] {
			message.Portals = append(message.Portals, fmt.Sprintf("%s,%d", portal.Address, portal.PortalGroupTag))
		}
		message.Redirect = m.hides(shown[name])
		all = append(all, message)
	}
	return all
}

// hides reports whether a host that is shown these portals must be redirected from another portal of this gateway.
func (m *maker) hides(portals []placement.PortalRef) bool {
	if len(portals) == 0 {
		return false
	}
	for _, own := range m.gateway.Spec.Portals {
		tag := m.gateway.Status.PortalGroupTags[own.Fabric]
		if !slices.ContainsFunc(portals, func(p placement.PortalRef) bool {
			return p.Gateway == m.self.Number && p.PortalGroupTag == tag && p.Address == model.CanonicalAddress(own.Advertised)
		}) {
			return true
		}
	}
	return false
}
