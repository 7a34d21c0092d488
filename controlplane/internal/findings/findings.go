// Package findings computes what is wrong with a system, and how an administrator corrects it. It is the only source of that: the API
// serves its findings, and `sluicectl doctor`, `status`, the READY column of lists, metrics and alerts show them.
//
// A finding comes from the objects, from their conditions, which package decide stores, or from facts about the control plane (System).
// A pure function computes all findings from these. Each finding has a row in the table Rules, from which the runbook is generated.
package findings

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
)

// Severity says what a finding means for hosts.
type Severity int

// The severities, in ascending order.
const (
	// Advice: nothing fails now. The set-up differs from what is recommended, or a request waits for its user.
	Advice Severity = iota + 1
	// Warning: hosts can use their volumes. The next fault, the next change or the passing of time can end that.
	Warning
	// Critical: a permitted host cannot use the object now, or the control plane cannot react to the next fault.
	Critical
)

// Kinds of findings that are about no object of the API.
const (
	KindControlPlane model.Kind = "ControlPlane"
	KindCertificate  model.Kind = "Certificate"
)

// Ref names an object.
type Ref struct {
	Kind model.Kind
	Name string
}

// Item is one fault of one object.
type Item struct {
	Rule *Rule
	Ref  Ref
	// Severity is that of the rule, unless hosts notice less of this fault.
	Severity Severity
	// Cause is a sentence without its subject. It does not name the object, so that equal faults of several objects are grouped.
	Cause  string
	Remedy string
	// Since is zero if no object of the store records when the fault began.
	Since time.Time
	// Settles is the time for which the fault must last before it is a finding. The caller of Items observes that.
	Settles time.Duration
	// root is the object whose fault causes this one; zero: none.
	root Ref
}

// Finding is a fault of one or more objects, with the faults that follow from it.
type Finding struct {
	// Item is that of the first object, with the earliest Since.
	Item
	// Worst is the severity of the most severe item.
	Worst Severity
	// Objects that have the fault, in order of names.
	Objects []Ref
	// Consequences in order of severity, rule and name.
	Consequences []Item
}

// survey collects items.
type survey struct {
	*objects.Objects
	system System
	items  []Item
	// worst is the severity of each object's worst item so far.
	worst map[Ref]Severity
}

// Items returns every fault, sorted: the most severe first, then in the order of Rules, then by kind and name.
func Items(o *objects.Objects, system System) []Item {
	s := &survey{Objects: o, system: system, worst: map[Ref]Severity{}}
	s.controlPlane()
	for _, gateway := range o.Gateways {
		s.gateway(gateway)
	}
	s.gatewayPools()
	for _, pool := range o.StoragePools {
		s.storagePool(pool)
	}
	for _, volume := range o.Volumes {
		s.volume(volume)
	}
	for _, snapshot := range o.Snapshots {
		s.snapshot(snapshot)
	}
	for _, target := range o.Targets {
		s.target(target)
	}
	for _, host := range o.Hosts {
		s.host(host)
	}
	s.lunsOfTargets()
	s.hostFaults()
	s.hostPaths()
	slices.SortFunc(s.items, Compare)
	return s.items
}

// Compare orders items as Items returns them.
func Compare(a, b Item) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Rule.order, b.Rule.order),
		cmp.Compare(a.Ref.Kind, b.Ref.Kind), cmp.Compare(a.Ref.Name, b.Ref.Name), cmp.Compare(a.Cause, b.Cause))
}

// detail is an optional part of an item.
type detail func(*Item)

// from names the object whose fault causes this one; zero: none.
func from(root Ref) detail { return func(item *Item) { item.root = root } }

// asOnly lowers the severity, because hosts notice less than the rule says.
func asOnly(severity Severity) detail { return func(item *Item) { item.Severity = severity } }

// settles makes a fault a finding only after it has lasted for a time.
func settles(after time.Duration) detail { return func(item *Item) { item.Settles = after } }

func (s *survey) add(rule *Rule, ref Ref, cause, remedy string, since time.Time, details ...detail) {
	item := Item{Rule: rule, Ref: ref, Severity: rule.Severity, Cause: cause, Remedy: remedy, Since: since}
	for _, set := range details {
		set(&item)
	}
	s.items = append(s.items, item)
	s.worst[ref] = max(s.worst[ref], item.Severity)
}

// has reports whether an object has an item of that severity or a more severe one so far.
func (s *survey) has(ref Ref, severity Severity) bool { return s.worst[ref] >= severity }

func of(object model.Object) Ref { return Ref{object.Kind(), object.Metadata().Name} }

// conditionOf returns the condition of a type; the zero Condition if there is none.
func conditionOf(object model.Object, kind string) model.Condition {
	for _, c := range *object.StatusConditions() {
		if c.Type == kind {
			return c
		}
	}
	return model.Condition{}
}

// Group makes findings of sorted items. Items with the same rule, kind and cause become one finding. An item whose fault follows from
// that of another object becomes a consequence of that object's finding.
func Group(items []Item) []Finding {
	first := map[Ref]Ref{} // the root of an object's worst item; its own reference if that has no root
	for _, item := range items {
		if _, known := first[item.Ref]; !known {
			first[item.Ref] = item.root
		}
	}
	type key struct {
		rule *Rule
		kind model.Kind
		text string
	}
	var found []*Finding
	byKey, byRef := map[key]*Finding{}, map[Ref]*Finding{}
	var follow []Item
	for _, item := range items {
		if hasItem(first, item.root) {
			follow = append(follow, item)
			continue
		}
		k := key{item.Rule, item.Ref.Kind, item.Cause}
		group := byKey[k]
		if group == nil {
			group = &Finding{Item: item, Worst: item.Severity}
			byKey[k] = group
			found = append(found, group)
		}
		group.Objects = append(group.Objects, item.Ref)
		if !item.Since.IsZero() && (group.Since.IsZero() || item.Since.Before(group.Since)) {
			group.Since = item.Since
		}
		if byRef[item.Ref] == nil {
			byRef[item.Ref] = group
		}
	}
	for _, item := range follow {
		group := byRef[rootOf(first, item.root)]
		group.Consequences = append(group.Consequences, item)
		group.Worst = max(group.Worst, item.Severity)
	}
	all := make([]Finding, len(found))
	for i, f := range found {
		all[i] = *f
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Or(cmp.Compare(b.Worst, a.Worst), Compare(a.Item, b.Item)) })
	return all
}

func hasItem(first map[Ref]Ref, ref Ref) bool {
	_, has := first[ref]
	return has
}

// rootOf follows the roots of objects with faults to the last one. That ends: the root of a target is a volume or a gateway, that of a
// volume its pool or its owner, that of a pool a gateway, and a gateway has none.
func rootOf(first map[Ref]Ref, ref Ref) Ref {
	for hasItem(first, first[ref]) {
		ref = first[ref]
	}
	return ref
}
