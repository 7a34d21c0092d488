package objects

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// lookedForBy is how many gateways look for one that has no stream, besides those that share a path set with it.
	lookedForBy = 2
	// maxLookedFor bounds whom one gateway looks for.
	maxLookedFor = 64
)

// PeersOf are the gateways that a gateway is to know, by number: all that share a path set with it, and some that have lost their
// stream. These may share theirs with nobody who is left, and who is not found gone is never taken over from (R1).
func (o *Objects) PeersOf(gateway *model.Gateway) []uint32 {
	number := gateway.Status.Number
	peers := o.lookedFor(gateway)
	for _, target := range o.Targets {
		if !target.Meta.Deleting() && slices.Contains(target.Status.PathSet, number) {
			peers = append(peers, target.Status.PathSet...)
		}
	}
	slices.Sort(peers)
	return slices.DeleteFunc(slices.Compact(peers), func(peer uint32) bool { return peer == number })
}

// lookedFor are those of its own pool, whose network it shares, that have no stream: each is looked for by the next ones that have.
func (o *Objects) lookedFor(gateway *model.Gateway) []uint32 {
	var lost, present []uint32
	for _, other := range o.Gateways {
		switch {
		case other.Spec.GatewayPool != gateway.Spec.GatewayPool:
		case other.Status.Health == model.GatewayDisconnected:
			lost = append(lost, other.Status.Number)
		case other.Status.Health == model.GatewayReady, other.Status.Health == model.GatewayDraining:
			present = append(present, other.Status.Number)
		}
	}
	slices.Sort(lost)
	slices.Sort(present)
	at, looks := slices.BinarySearch(present, gateway.Status.Number)
	if !looks {
		return nil
	}
	lost = slices.DeleteFunc(lost, func(number uint32) bool {
		next, _ := slices.BinarySearch(present, number)
		return (at-next+len(present))%len(present) >= lookedForBy
	})
	return lost[:min(len(lost), maxLookedFor)]
}
