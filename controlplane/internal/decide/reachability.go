package decide

import (
	"maps"
	"slices"
	"strings"
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
	number := g.Status.Number
	lost, reached := v.peersThatLost(g)
	left := v.lostSince.left(number, len(lost) > 0, now)
	ready := verdict{health: model.GatewayReady, reason: reasonConnected, message: "it has a stream to the control plane", wait: left}
	if len(lost) > 0 && left == 0 {
		// It is decided on again, because a report on another gateway may change the decision on this one.
		ready.lost, ready.wait = strings.Join(lost, "; "), UnreachedLimit
	}
	reason, message := "", v.portsClosed(g)
	switch {
	case message != "":
		reason = reasonPortsClosed
	case len(lost) > 0 && !reached && v.anotherIsReached(g):
		reason, message = reasonPeersUnreachable, "no other gateway reaches its forwarding port "+g.Spec.ForwardingAddress+
			", and they reach each other: "+strings.Join(lost, "; ")
	}
	switch left := v.unreachedSince.left(number, reason != "", now); {
	case reason == "":
		return ready
	case left > 0 && g.Status.Health != model.GatewayNotServing:
		ready.wait = left
		return ready
	}
	return verdict{health: model.GatewayNotServing, reason: reason, message: message, wait: UnreachedLimit}
}

// faultTimes has the time since when each gateway has a fault, by number.
type faultTimes map[uint32]time.Time

// left returns the rest of UnreachedLimit for a fault that a gateway has now, or 0. It forgets a fault that has ended.
func (f faultTimes) left(number uint32, faulty bool, now time.Time) time.Duration {
	if !faulty {
		delete(f, number)
		return 0
	}
	if _, known := f[number]; !known {
		f[number] = now
	}
	return max(0, UnreachedLimit-now.Sub(f[number]))
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

// peersThatLost returns which peers of a gateway cannot forward commands to it, each with the reason, and whether another peer can.
// If no gateway reaches another one, the fault is in the network between them, none is better than another, and all keep what they
// have.
func (v *LeaderView) peersThatLost(g *model.Gateway) (lost []string, reached bool) {
	blames := func(r peerReport) bool { return !r.Forwards() && v.credits(r, g) && !v.mayBeAtFault(r) }
	if !slices.ContainsFunc(slices.Collect(maps.Values(v.peers[g.Status.Number])), blames) { // the usual case needs no peers
		return nil, true
	}
	for _, r := range v.peers[g.Status.Number] {
		// A gateway that is no peer any more does not look for this one, and its last report is outdated.
		by := v.GatewayByNumber(r.Reporter.Number)
		switch {
		case by == nil || !slices.Contains(v.PeersOf(by), g.Status.Number):
		case r.Forwards():
			reached = reached || v.credits(r, g)
		case blames(r):
			lost = append(lost, "gateway "+by.Meta.Name+" "+whyLost(r.PeerReport))
		}
	}
	slices.Sort(lost)
	return lost, reached
}

func whyLost(r model.PeerReport) string {
	switch {
	case r.Refusal != "":
		return "is refused the login: " + r.Refusal
	case r.Reach == model.PeerSilent:
		return "receives nothing from it"
	}
	return "is refused the connection"
}

// anotherIsReached reports whether a gateway of the same gateway pool is reached by a peer.
func (v *LeaderView) anotherIsReached(g *model.Gateway) bool {
	for _, other := range v.Gateways {
		if other == g || other.Spec.GatewayPool != g.Spec.GatewayPool {
			continue
		}
		for _, r := range v.peers[other.Status.Number] {
			if v.credits(r, other) && r.Forwards() {
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

// mayBeAtFault reports whether the reporter of a lost peer is itself not reached, so that the fault may be its own.
func (v *LeaderView) mayBeAtFault(r peerReport) bool {
	by := v.GatewayByNumber(r.Reporter.Number)
	return by == nil || by.Status.Health == model.GatewayNotServing
}
