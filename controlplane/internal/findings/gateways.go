package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *survey) gateway(g *model.Gateway) {
	s.ahead(g)
	for _, portal := range g.Spec.Portals {
		if portal.Switch != "" {
			s.knownSwitch(g, portal.Fabric+"/"+portal.Switch)
		}
	}
	s.health(g)
	s.deletion(g)
	degraded := conditionOf(g, model.ConditionDegraded)
	switch {
	case degraded.Status != model.ConditionTrue:
	case degraded.Reason == model.ReasonNotApplied:
		s.add(ruleGatewayNotApplied, of(g), "refuses a part of its desired state: "+degraded.Message, "the message names what it refuses, and why",
			degraded.LastTransitionTime)
	case degraded.Reason == model.ReasonPeersLost:
		s.add(ruleGatewayPeersLost, of(g), "cannot be forwarded to: "+degraded.Message,
			"look at firewalls and at the network between the nodes; if a login is refused, the message names the reason",
			degraded.LastTransitionTime)
	case !s.has(of(g), Warning):
		s.add(ruleGatewayDegraded, of(g), fmt.Sprintf("is degraded (%s): %s", degraded.Reason, degraded.Message),
			"look at its log: the message names the reason", degraded.LastTransitionTime)
	}
	if version := g.Status.Version; s.system.Version != "" && version != "" && version != s.system.Version && serving(g) {
		s.add(ruleVersionSkew, of(g), fmt.Sprintf("runs version %s, and the control plane %s", version, s.system.Version),
			"upgrade the older one", time.Time{})
	}
}

// stillRefused is how long a refused process is a finding. It tries again every few seconds, and the store knows of it at intervals.
const stillRefused = model.RefusedAgain + 15*time.Second

// health finds gateways that take no part, each by one rule.
func (s *survey) health(g *model.Gateway) {
	name, node, ready := g.Meta.Name, g.Spec.Node, conditionOf(g, model.ConditionReady)
	since := ready.LastTransitionTime
	refused := conditionOf(g, model.ConditionRefused)
	// The condition stays until the next process is admitted, so it says nothing about a gateway that no process tries to become now.
	isRefused := refused.Status == model.ConditionTrue && s.system.Time.Sub(g.Status.LastRefused) < stillRefused
	hasStream := serving(g) || g.Status.Health == model.GatewayNotServing || g.Status.Health == model.GatewayDrained
	if isRefused && hasStream {
		s.add(ruleGatewayStartedTwice, of(g), fmt.Sprintf("another process that names it was refused (%s): %s", refused.Reason, refused.Message),
			"stop the process that should not be the gateway, or give each a name of its own", refused.LastTransitionTime)
	}
	switch {
	case isRefused && !hasStream:
		s.add(ruleGatewayRefused, of(g), fmt.Sprintf("a process that names it was refused (%s): %s", refused.Reason, refused.Message),
			"the message names the remedy; `sluicectl gateway describe "+name+"`", refused.LastTransitionTime)
	case g.Status.Health == model.GatewayDead:
		s.add(ruleGatewayDead, of(g), "is dead, and fenced from its volumes", "look at node "+node+" and restart it; it returns by itself", since)
	case g.Status.Health == model.GatewayNotServing:
		s.add(ruleGatewayNotServing, of(g), "is not reached: "+ready.Message,
			"look at the addresses of its portals and its forwarding port, at firewalls, and at the network between the nodes", since)
	case g.Status.Health == model.GatewayDisconnected && ready.Reason == model.ReasonFencingRateLimited:
		s.add(ruleFencingRateLimited, of(g), "seems to be dead, but too many nodes were declared dead just now: its volumes wait",
			"look at the network between the nodes, and at node "+node, since)
	case g.Status.Health == model.GatewayDisconnected:
		s.add(ruleGatewayDisconnected, of(g), "continues to serve, but has no connection to the control plane",
			"look at the network between node "+node+" and the control plane", since)
	case g.Status.Health == model.GatewayNew:
		s.add(ruleGatewayNew, of(g), "has not connected yet", "start sluice-gateway on node "+node, since)
	case g.Status.Health == model.GatewayDraining && ready.Reason == model.ReasonDrainBlocked:
		s.add(ruleDrainBlocked, of(g), "cannot be drained: "+ready.Message, "the message names what cannot leave it", since)
	case g.Status.Health == model.GatewayDrained:
		s.add(ruleGatewayDrained, of(g), "is drained: it takes no part",
			"when its maintenance is over: `sluicectl gateway undrain "+name+"`", since)
	}
}

// serving reports whether a gateway has a stream and takes part.
func serving(g *model.Gateway) bool {
	return g.Status.Health == model.GatewayReady || g.Status.Health == model.GatewayDraining
}

// mayServe reports whether a gateway may serve volumes: it has a stream, or continues without one.
func mayServe(g *model.Gateway) bool {
	return serving(g) || g.Status.Health == model.GatewayDisconnected
}

// gatewayPools finds pools of gateways that one failure disables entirely.
func (s *survey) gatewayPools() {
	nodes, count := map[string]map[string]bool{}, map[string]int{}
	for name := range s.GatewayPools {
		nodes[name] = map[string]bool{}
	}
	for _, g := range s.Gateways {
		pool := g.Spec.GatewayPool
		if nodes[pool] == nil {
			nodes[pool] = map[string]bool{}
		}
		nodes[pool][g.Spec.Node] = true
		count[pool]++
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		pool, remedy := Ref{model.KindGatewayPool, name}, "add a gateway on another node: `sluicectl gateway create --pool "+name+"`"
		switch {
		case count[name] == 0:
			s.add(ruleNoGatewayPool, pool, "has no gateway: nothing is exported", remedy, time.Time{})
		case count[name] == 1:
			s.add(ruleNotRedundantPool, pool, "has one gateway, without a peer: no failover is possible", remedy, time.Time{})
		case len(nodes[name]) == 1:
			s.add(ruleNotRedundantPool, pool, fmt.Sprintf("has %d gateways, all on one node: its loss takes every path", count[name]), remedy,
				time.Time{})
		}
	}
}

// knownSwitch finds a switch (`fabric/switch`) that no fabric declares: placement treats it as unknown, and hosts use longer paths
// unnoticed.
func (s *survey) knownSwitch(object model.Object, attached string) {
	fabric, name, _ := strings.Cut(attached, "/")
	if f := s.Fabrics[fabric]; f != nil && slices.Contains(f.Spec.Switches, name) {
		return
	}
	s.add(ruleUnknownSwitch, of(object), "names switch "+name+", which fabric "+fabric+" does not have: paths over it count as unknown",
		"correct the name, or add the switch to spec.switches of fabric "+fabric+"; `sluicectl apply`", time.Time{})
}
