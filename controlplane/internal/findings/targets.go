package findings

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *survey) target(t *model.Target) {
	s.deletion(t)
	if t.Meta.Deleting() {
		return
	}
	if len(t.Spec.Hosts) == 0 {
		s.add(ruleNoHosts, of(t), "permits no host", "name its hosts: `sluicectl target add-host`, or spec.hosts of the Target", time.Time{})
	}
	if len(t.Spec.Luns) == 0 {
		s.add(ruleNoLuns, of(t), "has no LUN", "map a volume: `sluicectl target add-lun`, or spec.luns of the Target", time.Time{})
	}
	if t.Spec.Paths == 1 {
		s.add(ruleOnePath, of(t), "is to have one path: if that gateway fails, hosts have none", "set spec.paths to 2 or more", time.Time{})
	}
	s.paths(t)
}

// paths finds whether hosts reach a target, and whether they still do after one failure.
func (s *survey) paths(t *model.Target) {
	more := "add gateways on other nodes to pool " + t.Spec.GatewayPool + ", or bring them back"
	ready, degraded := conditionOf(t, model.ConditionReady), conditionOf(t, model.ConditionDegraded)
	have, want := len(t.Status.PathSet), int(t.Spec.Paths)
	root := s.gatewayAtFault(t.Spec.GatewayPool)
	if have == 0 || ready.Status == model.ConditionFalse {
		s.add(ruleTargetNotExported, of(t), "no gateway exports it: hosts cannot reach it", more, ready.LastTransitionTime, from(root))
		return
	}
	switch {
	case degraded.Status == model.ConditionTrue && degraded.Reason == model.ReasonNotApplied:
		s.add(ruleTargetNotApplied, of(t), "is refused: "+degraded.Message, "the message names the gateway and the reason",
			degraded.LastTransitionTime)
	case have < want, degraded.Status == model.ConditionTrue && degraded.Reason == model.ReasonFewerPaths:
		cause := fmt.Sprintf("has %d of %d paths", have, want)
		if have >= want {
			cause = fmt.Sprintf("has %d paths, and not all their gateways serve", have)
		}
		s.add(ruleFewerPaths, of(t), cause, more, degraded.LastTransitionTime, from(root))
	case degraded.Status == model.ConditionTrue:
		s.add(ruleTargetDegraded, of(t), fmt.Sprintf("is degraded (%s): %s", degraded.Reason, degraded.Message), more,
			degraded.LastTransitionTime)
	}
	if redundant := conditionOf(t, model.ConditionPathsRedundant); !s.redundant(t) && t.Spec.Paths != 1 {
		cause := "its paths are not redundant: one failure can take them all"
		if redundant.Message != "" {
			cause += " (" + redundant.Message + ")"
		}
		s.add(ruleNotRedundant, of(t), cause, more, redundant.LastTransitionTime, from(root))
	}
}

// redundant uses the condition or, if there is none yet, the nodes of the paths.
func (s *survey) redundant(t *model.Target) bool {
	if c := conditionOf(t, model.ConditionPathsRedundant); c.Type != "" {
		return c.Status == model.ConditionTrue
	}
	nodes := map[string]bool{}
	for _, number := range t.Status.PathSet {
		if g := s.GatewayByNumber(number); g != nil {
			nodes[g.Spec.Node] = true
		}
	}
	return len(nodes) > 1
}

// gatewayAtFault returns the first gateway of a pool that takes no part because of a fault; zero: none.
func (s *survey) gatewayAtFault(pool string) Ref {
	for _, name := range slices.Sorted(maps.Keys(s.Gateways)) {
		g := s.Gateways[name]
		if g.Spec.GatewayPool == pool && !serving(g) && s.has(of(g), Warning) {
			return of(g)
		}
	}
	return Ref{}
}

// lunsOfTargets finds targets whose LUNs are all unusable.
func (s *survey) lunsOfTargets() {
	for _, t := range s.Targets {
		usable := func(lun model.TargetLun) bool { return !s.has(Ref{model.KindVolume, lun.Volume}, Critical) }
		if len(t.Spec.Luns) == 0 || t.Meta.Deleting() || slices.ContainsFunc(t.Spec.Luns, usable) {
			continue
		}
		s.add(ruleTargetUnusable, of(t), "none of its LUNs can be used", "correct the faults of its volumes",
			time.Time{}, from(Ref{model.KindVolume, t.Spec.Luns[0].Volume}))
	}
}
