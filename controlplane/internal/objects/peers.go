package objects

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// monitorsPerGateway is the number of gateways that monitor a gateway without a stream, besides those that share a path set
	// with it.
	monitorsPerGateway = 2
	// maxMonitored bounds the gateways that one gateway monitors in this way.
	maxMonitored = 64
)

// PeersOf returns the peers of a gateway, by number: all gateways that share a path set with it, and some that have lost their
// stream. All gateways that shared a path set with these may be gone, too, and a gateway that no peer reports gone is never taken
// over from (R1).
func (o *Objects) PeersOf(gateway *model.Gateway) []uint32 {
	number := gateway.Status.Number
	peers := o.monitoredBy(gateway)
	for _, target := range o.Targets {
		if !target.Meta.Deleting() && slices.Contains(target.Status.PathSet, number) {
			peers = append(peers, target.Status.PathSet...)
		}
	}
	slices.Sort(peers)
	return slices.DeleteFunc(slices.Compact(peers), func(peer uint32) bool { return peer == number })
}

// monitoredBy returns the gateways that this gateway monitors. They belong to its pool, which shares a network. They have no stream, or
// their peers do not reach them. A monitor reports when such a gateway is reached again.
// Each of them is monitored by the next gateways with a stream.
func (o *Objects) monitoredBy(gateway *model.Gateway) []uint32 {
	var lost, present []uint32
	for _, other := range o.Gateways {
		switch {
		case other.Spec.GatewayPool != gateway.Spec.GatewayPool:
		case other.Status.Health == model.GatewayDisconnected, other.Status.Health == model.GatewayNotServing:
			lost = append(lost, other.Status.Number)
		case other.Status.Health == model.GatewayReady, other.Status.Health == model.GatewayDraining:
			present = append(present, other.Status.Number)
		}
	}
	slices.Sort(lost)
	slices.Sort(present)
	at, isPresent := slices.BinarySearch(present, gateway.Status.Number)
	if !isPresent {
		return nil
	}
	lost = slices.DeleteFunc(lost, func(number uint32) bool {
		next, _ := slices.BinarySearch(present, number)
		return (at-next+len(present))%len(present) >= monitorsPerGateway
	})
	return lost[:min(len(lost), maxMonitored)]
}
