package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// ResetObserved removes all reports; the present ones follow. A stream that is absent then was not seen to end, because the store
// itself was unavailable, and with it the replicas that keep connections.
func (v *LeaderView) ResetObserved(now time.Time) {
	for number := range v.links {
		v.markDisconnected(number, now, false)
	}
	clear(v.reports)
	clear(v.peers)
	clear(v.pools)
	clear(v.applied)
	v.dirty = true
}

// Observe records a report, received at a time by the leader's clock.
func (v *LeaderView) Observe(o model.Observed, now time.Time) {
	switch {
	case o.Connection != nil:
		number := o.Connection.Ref.Number
		v.links[number] = &link{name: o.Connection.Gateway, connection: o.Connection, version: o.Version, since: now}
		v.dirty = true
	case o.Volume != nil:
		put(v.reports, o.Volume.UID, o.Volume.Gateway.Number, *o.Volume)
	case o.Peer != nil:
		put(v.peers, o.Peer.Peer.Number, o.Peer.Reporter.Number, peerReport{*o.Peer, o.Version, now})
	case o.Pool != nil:
		put(v.pools, o.Pool.UID, o.Pool.Gateway.Number, *o.Pool)
	case o.Load != nil:
		v.observeLoad(*o.Load, now)
	case o.Applied != nil:
		put(v.applied, objectID{o.Applied.Kind, o.Applied.UID}, o.Applied.Gateway.Number, *o.Applied)
	}
}

// Unobserve removes a report that was deleted at a version. The deletion was received at a time by the leader's clock.
func (v *LeaderView) Unobserve(o model.Observed, now time.Time) {
	switch {
	case o.Connection != nil:
		if l := v.links[o.Connection.Ref.Number]; l != nil && l.version <= o.Version {
			v.markDisconnected(o.Connection.Ref.Number, now, true)
		}
	case o.Volume != nil:
		delete(v.reports[o.Volume.UID], o.Volume.Gateway.Number)
	case o.Peer != nil:
		delete(v.peers[o.Peer.Peer.Number], o.Peer.Reporter.Number)
	case o.Pool != nil:
		delete(v.pools[o.Pool.UID], o.Pool.Gateway.Number)
	case o.Load != nil:
		delete(v.loads, o.Load.Gateway.Number)
	case o.Applied != nil:
		delete(v.applied[objectID{o.Applied.Kind, o.Applied.UID}], o.Applied.Gateway.Number)
	}
}

func put[K, L comparable, V any](all map[K]map[L]V, key K, inner L, value V) {
	if all[key] == nil {
		all[key] = map[L]V{}
	}
	all[key][inner] = value
}

// markDisconnected records once that a gateway has no stream.
func (v *LeaderView) markDisconnected(number uint32, now time.Time, seen bool) *link {
	l := v.links[number]
	if l == nil {
		l = &link{lost: now, seen: seen}
		v.links[number] = l
	} else if l.connection != nil {
		*l = link{name: l.name, version: l.version, lost: now, seen: seen}
	}
	v.dirty = true
	return l
}

// link returns the knowledge of a gateway's stream. A gateway that had no stream in this term lost it when the term began.
func (v *LeaderView) link(number uint32) link {
	if l := v.links[number]; l != nil {
		return *l
	}
	return link{lost: v.Since}
}

// connected returns the incarnation that has a stream.
func (v *LeaderView) connected(number uint32) (model.GatewayRef, bool) {
	if l := v.links[number]; l != nil && l.connection != nil {
		return l.connection.Ref, true
	}
	return model.GatewayRef{}, false
}
