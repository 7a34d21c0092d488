package placement

import (
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// FabricFrom converts the model's Fabric.
func FabricFrom(f *model.Fabric) Fabric {
	fabric := Fabric{Name: f.Meta.Name, Switches: f.Spec.Switches}
	for _, link := range f.Spec.Links {
		fabric.Links = append(fabric.Links, Link{A: link.A, B: link.B, Cost: link.Cost})
	}
	return fabric
}

// GatewayFrom converts the model's Gateway. otherLoad is in commands per second (Gateway.OtherLoad).
func GatewayFrom(g *model.Gateway, otherLoad uint64) Gateway {
	gateway := Gateway{
		Number:    g.Status.Number,
		Name:      g.Meta.Name,
		Pool:      g.Spec.GatewayPool,
		Node:      g.Spec.Node,
		Health:    healthFrom(g),
		Weight:    g.Spec.Weight,
		OtherLoad: otherLoad,
	}
	for _, portal := range g.Spec.Portals {
		gateway.Portals = append(gateway.Portals, Portal{
			Address:        model.CanonicalAddress(portal.Advertised),
			PortalGroupTag: g.Status.PortalGroupTags[portal.Fabric],
			Fabric:         portal.Fabric,
			Switch:         portal.Switch,
		})
	}
	return gateway
}

func healthFrom(g *model.Gateway) Health {
	switch {
	case g.Status.Health == model.GatewayDead, g.Status.Health == model.GatewayNotServing:
		return Dead // its paths do not count
	case g.Status.Drain, g.Meta.Deleting(), g.Status.Health == model.GatewayDraining,
		g.Status.Health == model.GatewayDrained:
		return Draining
	case g.Status.Health == model.GatewayReady && !g.Spec.Cordoned:
		return Usable
	}
	// A New gateway has nothing yet. A Disconnected one continues to serve (R3), but would not receive new assignments.
	return Cordoned
}

// VolumeFrom converts the model's Volume and its storage pool, nil if there is none. load is in commands per second.
func VolumeFrom(v *model.Volume, pool *model.StoragePool, load uint64) Volume {
	volume := Volume{Name: v.Meta.Name, Owner: ownerFrom(v.Status.Ownership), Load: load}
	switch {
	case pool == nil:
	case pool.Spec.Local != nil:
		volume.PoolKind, volume.Node = LocalPool, pool.Spec.Local.Node
	case pool.Spec.RBD != nil:
		volume.PoolKind = RBDPool
	}
	return volume
}

// ownerFrom treats a change in progress as done, so that a plan does not reverse it.
func ownerFrom(o model.Ownership) uint32 {
	switch o.State {
	case model.Acquiring, model.Moving:
		return o.Next.Number
	case model.Opening, model.Owned:
		return o.Owner.Number
	}
	return 0
}

// TargetFrom converts the model's Target.
func TargetFrom(t *model.Target) Target {
	target := Target{
		Name:        t.Meta.Name,
		GatewayPool: t.Spec.GatewayPool,
		Paths:       t.Spec.Paths,
		PathSet:     t.Status.PathSet,
		Hosts:       t.Spec.Hosts,
	}
	for _, lun := range t.Spec.Luns {
		target.Volumes = append(target.Volumes, lun.Volume)
	}
	return target
}

// HostFrom converts the model's Host.
func HostFrom(h *model.Host) Host {
	host := Host{Name: h.Meta.Name}
	for _, place := range h.Spec.Switches {
		fabric, name, _ := strings.Cut(place, "/")
		host.Switches = append(host.Switches, Attachment{Fabric: fabric, Switch: name})
	}
	return host
}
