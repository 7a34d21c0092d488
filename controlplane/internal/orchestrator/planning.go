package orchestrator

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

// plan is placement's last answer.
type plan struct {
	paths    map[string]placement.TargetPaths
	owners   map[string]uint32
	problems []placement.Problem
	made     bool
}

// Cluster is what placement goes by. Where gateways have yet to leave a path set, it is told the set without them: it
// decided that already.
func (v *View) Cluster() placement.Cluster {
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

// Dirty says that something has changed since the last plan; NextPlan that a plan is being made of what is known now.
func (v *View) Dirty() bool { return v.dirty }

// NextPlan notes that a plan is being made of what is known now.
func (v *View) NextPlan() { v.dirty = false }

// TakePlan takes up placement's answer, and returns what it concerns: what is planned otherwise than before.
func (v *View) TakePlan(a placement.Assignment) []Key {
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

// DecideTarget brings a target's path set to what is planned, and takes away one that was deleted and nobody exports.
func (v *View) DecideTarget(name string, now time.Time) Decision {
	var d Decision
	t := v.Targets[name]
	if t == nil {
		return d
	}
	kept := v.inUse(t)
	if t.Meta.Deleting() {
		if len(kept) == 0 && len(t.Status.PathSet) == 0 {
			a := about(t)
			a.Remove = t
			d.add(a)
			return d
		}
		d.add(pathSet(t, kept, nil)...)
		return d
	}
	planned, ok := v.plan.paths[name]
	if !ok {
		return d // it was not planned yet
	}
	wanted := slices.Clone(planned.Gateways)
	leaving := map[uint32]time.Time{}
	for _, number := range append(kept, v.waitsForSessions(t, now, &d)...) {
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
		a := about(t)
		a.Ports = ports
		d.add(a)
		return d // then the path set, on what is stored
	}
	d.add(pathSet(t, wanted, leaving)...)
	if len(d.Actions) == 0 {
		v.rebalance(t, now, &d)
		if a, needed := v.appliedPaths(t); needed {
			d.add(a)
		}
		if c, needed := conditions(t, v.targetConditions(t, planned), now); needed {
			d.add(c)
		}
	}
	if !planned.Redundant {
		d.Alarm = AlarmPathsNotRedundant
	}
	return d
}

// inUse are the gateways of a target's path set that have anything to do with a volume of it still; those that are
// gone export nothing.
func (v *View) inUse(t *model.Target) []uint32 {
	var used []uint32
	for _, number := range t.Status.PathSet {
		for name := range v.holding(number) {
			is := v.Volumes[name].Status.Ownership
			owns := is.Owner.Number == number && v.Standing(is.Owner) != Gone
			if (owns || is.Next.Number == number && !is.Next.IsZero()) && v.TargetOf(name) == t {
				used = append(used, number)
				break
			}
		}
	}
	return used
}

func (v *View) missingPorts(t *model.Target, wanted []uint32) []model.TargetPort {
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

// pathSet is the change of a path set and of who leaves it, if there is one, made only on the one that it was decided on.
func pathSet(t *model.Target, wanted []uint32, leaving map[uint32]time.Time) []Action {
	from, left := slices.Clone(t.Status.PathSet), maps.Clone(t.Status.Leaving)
	if slices.Equal(from, wanted) && maps.Equal(left, leaving) {
		return nil
	}
	message := fmt.Sprintf("exported by gateways %v, before by %v", wanted, from)
	if len(leaving) > 0 {
		message += fmt.Sprintf("; %v leave", slices.Sorted(maps.Keys(leaving)))
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

func (v *View) targetConditions(t *model.Target, planned placement.TargetPaths) []model.Condition {
	serving := 0
	for _, number := range t.Status.PathSet {
		if _, present := v.connected(number); present {
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
	message := fmt.Sprintf("%d of %d gateways have a stream", serving, wanted)
	return []model.Condition{
		condition(model.ConditionReady, serving > 0, choose(serving > 0, "Exported", "NoPath"), message),
		condition(model.ConditionProgressing, moving, choose(moving, "PathSetChanging", "Settled"), ""),
		degradedBy(v.refusals(t), condition(model.ConditionDegraded, serving < wanted,
			choose(serving < wanted, "FewerPaths", "AllPaths"), choose(serving < wanted, fewer, ""))),
		redundant,
	}
}

func choose(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
