package placement

import (
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// FabricFrom makes a Fabric of the model's.
func FabricFrom(f *model.Fabric) Fabric {
	fabric := Fabric{Name: f.Meta.Name, Switches: f.Spec.Switches}
	for _, link := range f.Spec.Links {
		fabric.Links = append(fabric.Links, Link{A: link.A, B: link.B, Cost: link.Cost})
	}
	return fabric
}

// GatewayFrom makes a Gateway of the model's; otherLoad is in commands per second
// (Gateway.OtherLoad).
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
	case g.Status.Health == model.GatewayDead:
		return Dead
	case g.Status.Drain, g.Meta.Deleting(), g.Status.Health == model.GatewayDraining,
		g.Status.Health == model.GatewayDrained:
		return Draining
	case g.Status.Health == model.GatewayReady && !g.Spec.Cordoned:
		return Usable
	}
	// New has nothing to keep yet; Disconnected serves on (R3), but would not hear of anything new.
	return Cordoned
}

// VolumeFrom makes a Volume of the model's and the storage pool it is in, nil where there is none;
// load is in commands per second.
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

// ownerFrom counts a change under way as done: planning it again must not turn it round.
func ownerFrom(o model.Ownership) uint32 {
	switch o.State {
	case model.Acquiring, model.Moving:
		return o.Next.Number
	case model.Opening, model.Owned:
		return o.Owner.Number
	}
	return 0
}

// TargetFrom makes a Target of the model's.
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

// HostFrom makes a Host of the model's.
func HostFrom(h *model.Host) Host {
	host := Host{Name: h.Meta.Name}
	for _, place := range h.Spec.Switches {
		fabric, name, _ := strings.Cut(place, "/")
		host.Switches = append(host.Switches, Attachment{Fabric: fabric, Switch: name})
	}
	return host
}
