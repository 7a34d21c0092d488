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
// over from (R1). The peers of a gateway that others monitor are also its monitors: it accepts their logins by these.
func (o *Objects) PeersOf(gateway *model.Gateway) []uint32 {
	number := gateway.Status.Number
	peers := o.monitoring(gateway)
	for _, target := range o.Targets {
		if !target.Meta.Deleting() && slices.Contains(target.Status.PathSet, number) {
			peers = append(peers, target.Status.PathSet...)
		}
	}
	slices.Sort(peers)
	return slices.DeleteFunc(slices.Compact(peers), func(peer uint32) bool { return peer == number })
}

// monitoring returns the gateways that a gateway monitors. For a lost gateway it returns its monitors. All belong to one pool, which shares
// a network. A gateway is lost if it has no stream, or if its peers do not reach it. Its monitors are the monitorsPerGateway serving
// gateways with the next numbers. They report when it is reached again.
func (o *Objects) monitoring(gateway *model.Gateway) []uint32 {
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
	number := gateway.Status.Number
	if slices.Contains(lost, number) {
		return slices.DeleteFunc(slices.Clone(present), func(other uint32) bool { return !monitors(present, other, number) })
	}
	if !slices.Contains(present, number) {
		return nil
	}
	lost = slices.DeleteFunc(lost, func(other uint32) bool { return !monitors(present, number, other) })
	return lost[:min(len(lost), maxMonitored)]
}

// monitors reports whether a serving gateway monitors a lost gateway. present has the numbers of all serving gateways, in order.
func monitors(present []uint32, monitor, lost uint32) bool {
	at, _ := slices.BinarySearch(present, monitor)
	next, _ := slices.BinarySearch(present, lost)
	return (at-next+len(present))%len(present) < monitorsPerGateway
}
