package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// death is a gateway of a node that this leader has declared dead.
type death struct {
	node string
	at   time.Time
}

// Reasons of a gateway's health.
const (
	reasonConnected        = "Connected"
	reasonNever            = "NeverConnected"
	reasonNoStream         = model.ReasonNoStream
	reasonPeersUnreachable = "PeersUnreachable"
	reasonDraining         = "Draining"
	reasonDrained          = "Drained"
	reasonDrainBlocked     = model.ReasonDrainBlocked
	reasonRateLimited      = model.ReasonFencingRateLimited
)

// verdict is a gateway's health, the reason, and the time until the next decision.
type verdict struct {
	health  model.GatewayHealth
	reason  string
	message string
	wait    time.Duration
	// lost states which peers do not reach a gateway that serves, and why. Empty: none.
	lost string
}

// DecideGateway updates a gateway's status from reports, and removes a deleted gateway that holds nothing.
func (v *LeaderView) DecideGateway(name string, now time.Time) Decision {
	var decision Decision
	g := v.Gateways[name]
	if g == nil {
		return decision
	}
	found := v.healthOf(g, now)
	decision.wait(found.wait)
	decision.RateLimited = found.reason == reasonRateLimited
	if g.Meta.Deleting() && v.free(g) && (found.health == model.GatewayDrained || found.health == model.GatewayNew ||
		v.link(g.Status.Number).connection == nil) {
		decision.add(&ForgetGateway{Subject: about(g), Number: g.Status.Number}, &Remove{about(g)})
		return decision
	}
	if change, needed := v.gatewayStatus(g, found, now); needed {
		decision.add(change)
	}
	if c, needed := conditions(g, v.gatewayConditions(g, found), now); needed && len(decision.Actions) == 0 {
		decision.add(c)
	}
	return decision
}

// healthOf returns the health of a gateway.
func (v *LeaderView) healthOf(g *model.Gateway, now time.Time) verdict {
	l := v.link(g.Status.Number)
	leaving := g.Status.Drain || g.Meta.Deleting()
	if l.connection == nil {
		return v.healthWithoutStream(g, l, now)
	}
	if !leaving {
		return v.reachability(g, now)
	}
	switch {
	case v.free(g):
		return verdict{health: model.GatewayDrained, reason: reasonDrained, message: "it owns no volume and exports no target"}
	}
	if blocked := v.drainBlocked(g); blocked != "" {
		return verdict{health: model.GatewayDraining, reason: reasonDrainBlocked, message: blocked, wait: StayRetry}
	}
	return verdict{health: model.GatewayDraining, reason: reasonDraining, wait: StayRetry,
		message: fmt.Sprintf("%d volumes and %d targets have yet to leave it", len(v.holding(g.Status.Number)), v.exports(g.Status.Number))}
}

// drainBlocked returns what cannot leave a gateway, why, and the remedy; empty: nothing known.
func (v *LeaderView) drainBlocked(g *model.Gateway) string {
	for _, p := range v.plan.problems {
		if p.Reason != placement.ReasonDrainBlocked {
			continue
		}
		if p.Kind == model.KindTarget && slices.Contains(v.plan.paths[p.Name].Gateways, g.Status.Number) ||
			p.Kind == model.KindVolume && v.plan.owners[p.Name] == g.Status.Number {
			return fmt.Sprintf("%s %s: %s; %s", strings.ToLower(string(p.Kind)), p.Name, p.Wrong, p.Mend)
		}
	}
	held, first, count := v.holding(g.Status.Number), "", 0
	for name := range v.stayReasons {
		if !held[name] {
			continue
		}
		if count++; first == "" || name < first {
			first = name
		}
	}
	switch count {
	case 0:
		return ""
	case 1:
		return "volume " + first + " can't leave it: " + v.stayReasons[first] + ". See what is wrong: sluicectl doctor"
	}
	return fmt.Sprintf("%d volumes can't leave it; volume %s: %s. See what is wrong: sluicectl doctor", count, first, v.stayReasons[first])
}

func (v *LeaderView) healthWithoutStream(g *model.Gateway, l link, now time.Time) verdict {
	delete(v.unreachedSince, g.Status.Number)
	delete(v.lostSince, g.Status.Number)
	switch {
	case g.Status.Incarnation == "":
		return verdict{health: model.GatewayNew, reason: reasonNever, message: "no gateway of this name has connected yet"}
	case g.Status.Health == model.GatewayDead:
		return verdict{health: model.GatewayDead, reason: reasonPeersUnreachable, message: "its stream has ended, and its peers do not reach it"}
	case g.Status.Health == model.GatewayDrained && v.free(g):
		return verdict{health: model.GatewayDrained, reason: reasonDrained, message: "it owns no volume and exports no target"}
	}
	absent := verdict{health: model.GatewayDisconnected, reason: reasonNoStream,
		message: "it has no stream, and no peer that has one finds it gone: it may serve on"}
	if grace := ReconnectGrace - now.Sub(l.lost); !l.seen && grace > 0 {
		absent.wait = grace
		return absent
	}
	dead, wait := v.peersFindGone(g, now)
	absent.wait = wait
	if !dead {
		return absent
	}
	if free := v.mayDeclare(g.Spec.Node, now); free > 0 {
		return verdict{health: model.GatewayDisconnected, reason: reasonRateLimited, wait: free,
			message: "its peers do not reach it, but too many nodes were declared dead just now: waiting"}
	}
	if !slices.ContainsFunc(v.deaths, func(decision death) bool { return decision.node == g.Spec.Node }) {
		v.deaths = append(v.deaths, death{g.Spec.Node, now}) // it counts even if the change is then not stored
	}
	return verdict{health: model.GatewayDead, reason: reasonPeersUnreachable, message: "its stream has ended, and its peers do not reach it"}
}

// peersFindGone reports whether the peers that have a stream find a gateway refused, or silent for long enough (R1). Otherwise it
// returns when that may become true as time passes. Only reports of this term count, on the present incarnation, and by the
// present incarnation of a peer that is itself reached. A report that the peer hears the gateway always counts.
func (v *LeaderView) peersFindGone(g *model.Gateway, now time.Time) (bool, time.Duration) {
	var wait time.Duration
	refused, silent := false, false
	for _, h := range v.peers[g.Status.Number] {
		by, present := v.connected(h.Reporter.Number)
		if !present || by != h.Reporter || h.Peer.Incarnation != g.Status.Incarnation {
			continue
		}
		if h.Reach == model.PeerConnected {
			return false, 0
		}
		if h.version <= v.Term || v.mayBeAtFault(h) {
			continue
		}
		switch left := SilentLimit - h.Silent - now.Sub(h.at); {
		case h.Reach == model.PeerRefused:
			refused = true
		case left > 0:
			wait = max(wait, left)
		default:
			silent = true
		}
	}
	if refused || silent && wait == 0 {
		return true, 0
	}
	return false, wait
}

// mayDeclare returns how long a gateway of a node must wait to be declared dead, because of others that were declared dead
// recently (R1).
func (v *LeaderView) mayDeclare(node string, now time.Time) time.Duration {
	v.deaths = slices.DeleteFunc(v.deaths, func(died death) bool { return now.Sub(died.at) >= DeathWindow })
	nodes := map[string]bool{}
	for _, died := range v.deaths {
		nodes[died.node] = true
	}
	if nodes[node] || len(nodes) < MaxDeadNodes {
		return 0
	}
	return DeathWindow - now.Sub(v.deaths[0].at)
}

// exports counts the targets that have a gateway in their path set.
func (v *LeaderView) exports(number uint32) int {
	count := 0
	for _, t := range v.Targets {
		if slices.Contains(t.Status.PathSet, number) {
			count++
		}
	}
	return count
}

// free reports whether a gateway owns no volume, is to own none, and exports no target.
func (v *LeaderView) free(g *model.Gateway) bool {
	return len(v.holding(g.Status.Number)) == 0 && v.exports(g.Status.Number) == 0
}

// gatewayStatus returns the change of a gateway's status, and whether there is one.
func (v *LeaderView) gatewayStatus(g *model.Gateway, found verdict, now time.Time) (Action, bool) {
	connection := v.link(g.Status.Number).connection
	wanted := func(s *model.GatewayStatus) bool {
		before := [...]any{s.Health, s.Incarnation, s.BootID, s.PID, s.PIDStartTime, s.Version, s.AppliedVersion, s.PairwiseKeys}
		s.Health = found.health
		if c := connection; c != nil {
			s.Incarnation, s.BootID, s.PID, s.PIDStartTime = c.Ref.Incarnation, c.BootID, c.PID, c.PIDStartTime
			s.Version = c.Version
			s.PairwiseKeys = slices.Contains(c.Capabilities, model.CapabilityPairwiseKeys)
			if load := v.loads[c.Ref.Number]; load.Gateway == c.Ref && load.AppliedVersion != 0 {
				s.AppliedVersion = load.AppliedVersion
			}
		}
		return before != [...]any{s.Health, s.Incarnation, s.BootID, s.PID, s.PIDStartTime, s.Version, s.AppliedVersion, s.PairwiseKeys}
	}
	status := g.Status
	if !wanted(&status) {
		return nil, false
	}
	from, incarnation := g.Status.Health, g.Status.Incarnation
	conditions := v.gatewayConditions(g, found)
	a := modify(g, func(o model.Object) bool {
		s := &o.(*model.Gateway).Status
		// The verdict applies to one incarnation and health: if either has changed meanwhile, that is decided on first.
		if s.Health != from || s.Incarnation != incarnation || !wanted(s) {
			return false
		}
		s.LastSeen = now.UTC()
		for _, c := range conditions {
			c.ObservedGeneration = o.Metadata().Generation
			model.SetCondition(&s.Conditions, c, now)
		}
		return true
	}, gatewayEvent(g, found, incarnation != "" && status.Incarnation != incarnation))
	if a.Event == nil {
		a.Event = appliedEvent(g.Status.Conditions, conditions)
	}
	return a, true
}

func gatewayEvent(g *model.Gateway, found verdict, restarted bool) *Event {
	if found.health != g.Status.Health {
		warning := found.health == model.GatewayDead || found.health == model.GatewayDisconnected
		return &Event{warning, string(found.health), found.message}
	}
	if restarted {
		return &Event{false, "Restarted", "another process of this gateway has connected; the one before is gone"}
	}
	return nil
}

func (v *LeaderView) gatewayConditions(g *model.Gateway, found verdict) []model.Condition {
	degraded := condition(model.ConditionDegraded, found.health == model.GatewayDead || found.health == model.GatewayDisconnected,
		found.reason, found.message)
	if found.lost != "" {
		degraded = condition(model.ConditionDegraded, true, model.ReasonPeersLost, found.lost)
	}
	return []model.Condition{
		condition(model.ConditionReady, found.health == model.GatewayReady, found.reason, found.message),
		condition(model.ConditionProgressing, found.health == model.GatewayDraining, found.reason, found.message),
		degradedBy(v.refusals(g), degraded),
	}
}
