package decide

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// plan is the last result of placement.
type plan struct {
	paths    map[string]placement.TargetPaths
	owners   map[string]uint32
	problems []placement.Problem
	made     bool
}

// Cluster returns the input of placement. Where gateways have yet to leave a path set, it contains the set without them, because
// placement has already decided that.
func (v *LeaderView) Cluster() placement.Cluster {
	var c placement.Cluster
	for _, name := range names(v.Fabrics) {
		c.Fabrics = append(c.Fabrics, placement.FabricFrom(v.Fabrics[name]))
	}
	for _, name := range names(v.Gateways) {
		c.Gateways = append(c.Gateways, placement.GatewayFrom(v.Gateways[name], 0))
	}
	for _, name := range names(v.Volumes) {
		volume := v.Volumes[name]
		c.Volumes = append(c.Volumes, placement.VolumeFrom(volume, v.StoragePools[volume.Spec.Pool], v.rate(volume)))
	}
	for _, name := range names(v.Targets) {
		t := v.Targets[name]
		if t.Meta.Deleting() {
			continue
		}
		target := placement.TargetFrom(t)
		if planned, ok := v.plan.paths[name]; ok && subset(planned.Gateways, t.Status.PathSet) {
			target.PathSet = planned.Gateways
		}
		c.Targets = append(c.Targets, target)
	}
	for _, name := range names(v.Hosts) {
		c.Hosts = append(c.Hosts, placement.HostFrom(v.Hosts[name]))
	}
	return c
}

func subset(part, whole []uint32) bool {
	return !slices.ContainsFunc(part, func(n uint32) bool { return !slices.Contains(whole, n) })
}

// Dirty reports whether anything has changed since the last plan.
func (v *LeaderView) Dirty() bool { return v.dirty }

// NextPlan records that a plan is being made from the present state.
func (v *LeaderView) NextPlan() { v.dirty = false }

// TakePlan stores the result of placement, and returns the keys of the objects whose plan has changed.
func (v *LeaderView) TakePlan(a placement.Assignment) []Key {
	next := plan{paths: map[string]placement.TargetPaths{}, owners: map[string]uint32{}, problems: a.Problems, made: true}
	var touched []Key
	for _, t := range a.Targets {
		next.paths[t.Target] = t
		touched = append(touched, Key{model.KindTarget, t.Target})
	}
	for _, o := range a.Volumes {
		next.owners[o.Volume] = o.Owner
		if volume := v.Volumes[o.Volume]; volume != nil && volume.Status.Ownership.Owner.Number != o.Owner {
			touched = append(touched, Key{model.KindVolume, o.Volume})
		}
	}
	for name, g := range v.Gateways {
		if g.Status.Health == model.GatewayDraining {
			touched = append(touched, Key{model.KindGateway, name})
		}
	}
	v.plan = next
	return touched
}

// DecideTarget brings a target's path set to the plan, and removes a deleted target that no gateway exports.
func (v *LeaderView) DecideTarget(name string, now time.Time) Decision {
	var decision Decision
	t := v.Targets[name]
	if t == nil {
		return decision
	}
	kept := v.inUse(t)
	if t.Meta.Deleting() {
		if len(kept) == 0 && len(t.Status.PathSet) == 0 {
			decision.add(&Remove{about(t)})
			return decision
		}
		decision.add(v.pathSet(t, kept, nil)...)
		return decision
	}
	planned, ok := v.plan.paths[name]
	if !ok {
		return decision // it was not planned yet
	}
	wanted := slices.Clone(planned.Gateways)
	leaving := map[uint32]time.Time{}
	for _, number := range append(kept, v.waitsForSessions(t, now, &decision)...) {
		if !slices.Contains(wanted, number) {
			wanted = append(wanted, number)
			leaving[number] = now.UTC()
			if since, leaves := t.Status.Leaving[number]; leaves {
				leaving[number] = since
			}
		}
	}
	slices.Sort(wanted)
	if ports := v.missingPorts(t, wanted); len(ports) > 0 {
		decision.add(&AddPorts{Subject: about(t), Ports: ports})
		return decision // the next decision changes the path set, from the stored state
	}
	decision.add(v.pathSet(t, wanted, leaving)...)
	if len(decision.Actions) == 0 {
		v.rebalance(t, now, &decision)
		if a, needed := v.appliedPaths(t); needed {
			decision.add(a)
		}
		if c, needed := conditions(t, v.targetConditions(t, planned), now); needed {
			decision.add(c)
		}
	}
	return decision
}

// inUse returns the gateways of a target's path set that still hold a volume of it. Gateways that are gone export nothing.
func (v *LeaderView) inUse(t *model.Target) []uint32 {
	var used []uint32
	for _, number := range t.Status.PathSet {
		for name := range v.holding(number) {
			ownership := v.Volumes[name].Status.Ownership
			owns := ownership.Owner.Number == number && v.Standing(ownership.Owner) != Gone
			if (owns || ownership.Next.Number == number && !ownership.Next.IsZero()) && v.TargetOf(name) == t {
				used = append(used, number)
				break
			}
		}
	}
	return used
}

func (v *LeaderView) missingPorts(t *model.Target, wanted []uint32) []model.TargetPort {
	var missing []model.TargetPort
	for _, number := range wanted {
		g := v.GatewayByNumber(number)
		if g == nil {
			continue
		}
		for _, fabric := range names(g.Status.PortalGroupTags) {
			port := model.TargetPort{Gateway: number, PortalGroupTag: g.Status.PortalGroupTags[fabric]}
			if !slices.ContainsFunc(t.Status.Ports, func(have model.TargetPort) bool {
				return have.Gateway == port.Gateway && have.PortalGroupTag == port.PortalGroupTag
			}) {
				missing = append(missing, port)
			}
		}
	}
	return missing
}

// gatewayNames returns the names of these gateways for messages.
func (v *LeaderView) gatewayNames(numbers []uint32) []string {
	called := make([]string, len(numbers))
	for i, number := range numbers {
		called[i] = v.gatewayName(number)
	}
	return called
}

// pathSet returns the change of a path set and of its leaving gateways, if there is one. It applies only to the path set on which
// it was decided.
func (v *LeaderView) pathSet(t *model.Target, wanted []uint32, leaving map[uint32]time.Time) []Action {
	from, left := slices.Clone(t.Status.PathSet), maps.Clone(t.Status.Leaving)
	if slices.Equal(from, wanted) && maps.Equal(left, leaving) {
		return nil
	}
	message := fmt.Sprintf("exported by gateways %v, before by %v", v.gatewayNames(wanted), v.gatewayNames(from))
	if len(leaving) > 0 {
		message += fmt.Sprintf("; %v leave", v.gatewayNames(slices.Sorted(maps.Keys(leaving))))
	}
	return []Action{modify(t, func(o model.Object) bool {
		status := &o.(*model.Target).Status
		if !slices.Equal(status.PathSet, from) || !maps.Equal(status.Leaving, left) {
			return false
		}
		status.PathSet, status.Leaving = wanted, leaving
		status.PathGeneration++
		return true
	}, &Event{false, "PathSetChanged", message})}
}

func (v *LeaderView) targetConditions(t *model.Target, planned placement.TargetPaths) []model.Condition {
	serving := 0
	for _, number := range t.Status.PathSet {
		g := v.GatewayByNumber(number)
		if g == nil || g.Status.Health == model.GatewayNotServing {
			continue
		}
		// A gateway that has lost its stream continues to serve (R3).
		if _, present := v.connected(number); present || g.Status.Health == model.GatewayDisconnected {
			serving++
		}
	}
	wanted := int(t.Spec.Paths)
	moving := !slices.Equal(t.Status.PathSet, planned.Gateways)
	fewer := "fewer gateways serve it than it asks for"
	var single []string
	for _, domain := range planned.Single {
		single = append(single, fmt.Sprintf("%s %s", strings.ToLower(string(domain.Kind)), domain.Name))
	}
	redundant := condition(model.ConditionPathsRedundant, planned.Redundant, "Redundant",
		"every host keeps a path whatever single thing fails")
	if !planned.Redundant {
		redundant.Reason = "SinglePointOfFailure"
		redundant.Message = cmp.Or(strings.Join(single, ", "), "no gateway") + ": one failure takes all paths of a host"
	}
	message := fmt.Sprintf("%d of %d gateways serve it", serving, wanted)
	return []model.Condition{
		condition(model.ConditionReady, serving > 0, choose(serving > 0, "Exported", "NoPath"), message),
		condition(model.ConditionProgressing, moving, choose(moving, "PathSetChanging", "Settled"), ""),
		degradedBy(v.refusals(t), condition(model.ConditionDegraded, serving < wanted,
			choose(serving < wanted, model.ReasonFewerPaths, "AllPaths"), choose(serving < wanted, fewer, ""))),
		redundant,
	}
}

func choose(holds bool, yes, no string) string {
	if holds {
		return yes
	}
	return no
}

// Imbalance returns the largest number of planned volumes for each unit of weight among usable gateways, relative to the mean. 0: the
// plan has no volumes.
func (v *LeaderView) Imbalance() float64 {
	owned, sum, weights, most := map[uint32]float64{}, 0.0, 0.0, 0.0
	for _, owner := range v.plan.owners {
		owned[owner]++
	}
	for _, g := range v.Gateways {
		if g.Status.Health == model.GatewayReady && !leaves(g) {
			weight := float64(max(1, g.Spec.Weight))
			sum, weights = sum+owned[g.Status.Number], weights+weight
			most = max(most, owned[g.Status.Number]/weight)
		}
	}
	if sum == 0 {
		return 0
	}
	return most / (sum / weights)
}
