package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Reasons of conditions on how gateways applied their desired state.
const (
	reasonNotApplied = model.ReasonNotApplied
	reasonApplied    = "Applied"
)

// objectID identifies an object as reports do.
type objectID struct {
	kind model.Kind
	uid  string
}

// appliedAt returns a gateway's report on an object, if the process that was connected last has sent one.
func (v *LeaderView) appliedAt(object model.Object, number uint32) (model.AppliedReport, bool) {
	r, known := v.applied[objectID{object.Kind(), object.Metadata().UID}][number]
	g := v.GatewayByNumber(number)
	return r, known && g != nil && g.Ref() == r.Gateway
}

// refusals returns which gateways could not apply an object, and why; empty: none.
func (v *LeaderView) refusals(object model.Object) string {
	var all []string
	for _, number := range slices.Sorted(maps.Keys(v.applied[objectID{object.Kind(), object.Metadata().UID}])) {
		if r, known := v.appliedAt(object, number); known && r.Refused != "" {
			all = append(all, fmt.Sprintf("gateway %s: %s", v.GatewayByNumber(number).Meta.Name, r.Refused))
		}
	}
	return strings.Join(all, "; ")
}

// appliedPaths updates, from the reports, which gateways have applied a target.
func (v *LeaderView) appliedPaths(t *model.Target) (Action, bool) {
	wanted := map[uint32]string{}
	for _, number := range t.Status.PathSet {
		if r, known := v.appliedAt(t, number); known && r.Export != "" && r.Refused == "" {
			wanted[number] = r.Export
		}
	}
	if maps.Equal(wanted, t.Status.Applied) {
		return nil, false
	}
	return modify(t, func(o model.Object) bool {
		status := &o.(*model.Target).Status
		if maps.Equal(wanted, status.Applied) {
			return false
		}
		status.Applied = wanted
		return true
	}, nil), true
}

// degradedBy returns a Degraded condition that states refusals, if there are any, before its other content.
func degradedBy(refusals string, otherwise model.Condition) model.Condition {
	if refusals == "" {
		return otherwise
	}
	message := refusals
	if otherwise.Status == model.ConditionTrue && otherwise.Message != "" {
		message += "; " + otherwise.Message
	}
	return condition(model.ConditionDegraded, true, reasonNotApplied, message)
}

// appliedEvent returns an event if gateways began to refuse an object, refuse it for another reason, or no longer refuse it.
func appliedEvent(have, wanted []model.Condition) *Event {
	before, now := degraded(have), degraded(wanted)
	switch {
	case now.Reason == reasonNotApplied && (before.Reason != now.Reason || before.Message != now.Message):
		return &Event{true, reasonNotApplied, now.Message}
	case now.Reason != reasonNotApplied && before.Reason == reasonNotApplied:
		return &Event{false, reasonApplied, "gateways refuse nothing of it any more"}
	}
	return nil
}

func degraded(all []model.Condition) model.Condition {
	for _, c := range all {
		if c.Type == model.ConditionDegraded {
			return c
		}
	}
	return model.Condition{}
}
