package decide

import (
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// UnreachedLimit is the time for which a gateway with a stream may be out of reach before it is NotServing. A gateway that starts, or
// opens a port of a predecessor that ended just before, needs less.
const UnreachedLimit = 3 * time.Second

const reasonPortsClosed = "PortsClosed"

// reachability returns the health of a gateway that has a stream and is not to leave: Ready, unless hosts or its peers do not reach
// its ports.
func (v *LeaderView) reachability(g *model.Gateway, now time.Time) verdict {
	reason, message := "", v.portsClosed(g)
	switch {
	case message != "":
		reason = reasonPortsClosed
	case v.unreached(g):
		reason, message = reasonPeersUnreachable, "no other gateway reaches its forwarding port "+g.Spec.ForwardingAddress+", and they reach each other"
	}
	number := g.Status.Number
	if reason == "" {
		delete(v.unreachedSince, number)
		return verdict{model.GatewayReady, reasonConnected, "it has a stream to the control plane", 0}
	}
	since, known := v.unreachedSince[number]
	if !known {
		since = now
		v.unreachedSince[number] = now
	}
	if left := UnreachedLimit - now.Sub(since); left > 0 && g.Status.Health != model.GatewayNotServing {
		return verdict{model.GatewayReady, reasonConnected, "it has a stream to the control plane", left}
	}
	return verdict{model.GatewayNotServing, reason, message, 0}
}

// portsClosed returns why a gateway could not open a port that it needs: every portal, because hosts can use any of them, or the
// forwarding port if it has a peer. Empty: none is known.
func (v *LeaderView) portsClosed(g *model.Gateway) string {
	report, known := v.appliedAt(g, g.Status.Number)
	switch {
	case !known:
	case report.ClosedForwarding != "" && v.hasPeer(g):
		return report.ClosedForwarding
	case report.ClosedPortals > 0 && report.ClosedPortals >= len(g.Spec.Portals):
		return "it could not open any of its portals: " + report.Refused
	}
	return ""
}

// hasPeer reports whether another gateway with a stream belongs to the same gateway pool.
func (v *LeaderView) hasPeer(g *model.Gateway) bool {
	for _, other := range v.Gateways {
		if _, present := v.connected(other.Status.Number); present && other != g && other.Spec.GatewayPool == g.Spec.GatewayPool {
			return true
		}
	}
	return false
}

// unreached reports whether peers with a stream find that they do not reach a gateway, none finds that it does, and some gateway of
// the pool is reached. If no gateway reaches another one, the fault is in the network between them, none is better than another, and
// all keep what they have.
func (v *LeaderView) unreached(g *model.Gateway) bool {
	lost := false
	for _, r := range v.peers[g.Status.Number] {
		lost = lost || r.Reach != model.PeerConnected && v.credits(r, g)
	}
	if !lost { // the usual case needs no peers
		return false
	}
	lost = false
	for _, r := range v.peers[g.Status.Number] {
		// A gateway that is no peer any more does not look for this one, and its last report is outdated.
		by := v.GatewayByNumber(r.Reporter.Number)
		if by == nil || !v.credits(r, g) || !slices.Contains(v.PeersOf(by), g.Status.Number) {
			continue
		}
		if r.Reach == model.PeerConnected {
			return false
		}
		lost = true
	}
	return lost && v.anotherIsReached(g)
}

// anotherIsReached reports whether a gateway of the same gateway pool is reached by a peer.
func (v *LeaderView) anotherIsReached(g *model.Gateway) bool {
	for _, other := range v.Gateways {
		if other == g || other.Spec.GatewayPool != g.Spec.GatewayPool {
			continue
		}
		for _, r := range v.peers[other.Status.Number] {
			if v.credits(r, other) && r.Reach == model.PeerConnected {
				return true
			}
		}
	}
	return false
}

// credits reports whether a report is of a process that has a stream, about the present process of a gateway that has one.
func (v *LeaderView) credits(r peerReport, about *model.Gateway) bool {
	reporter, present := v.connected(r.Reporter.Number)
	now, serves := v.connected(about.Status.Number)
	return present && serves && reporter == r.Reporter && now == r.Peer
}
