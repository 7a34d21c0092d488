package decide

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Decision is what to do for one object now.
type Decision struct {
	// Actions in order. The next one is executed only if the previous one was.
	Actions []Action
	// Wait is the time until the next decision, even if nothing changes; 0: no limit.
	Wait time.Duration
	// NoOwner: hosts are to use the volume, and no gateway can own it now.
	NoOwner bool
	// RateLimited: a gateway would be declared dead, but too many were just declared dead (R1).
	RateLimited bool
	// held: a volume waits until others have new owners. Everything else that concerns it waits too, because processor time is
	// scarce then.
	held bool
}

// Event is an event for users, about an object.
type Event struct {
	Warning bool
	Reason  string
	Message string
}

func (d *Decision) add(actions ...Action) {
	d.Actions = append(d.Actions, actions...)
}

// removes reports whether the last action removes the object.
func (d *Decision) removes() bool {
	if len(d.Actions) == 0 {
		return false
	}
	_, removes := d.Actions[len(d.Actions)-1].(*Remove)
	return removes
}

// wait shortens the time until the next decision.
func (d *Decision) wait(left time.Duration) {
	if left > 0 && (d.Wait == 0 || left < d.Wait) {
		d.Wait = left
	}
}

// conditions returns an action that updates an object's conditions, and whether it is needed.
func conditions(object model.Object, wanted []model.Condition, now time.Time) (Action, bool) {
	generation := object.Metadata().Generation
	set := func(all *[]model.Condition) bool {
		changed := false
		for _, c := range wanted {
			c.ObservedGeneration = generation
			changed = model.SetCondition(all, c, now) || changed
		}
		return changed
	}
	have := slices.Clone(*object.StatusConditions())
	if !set(&have) {
		return nil, false
	}
	event := cmp.Or(appliedEvent(*object.StatusConditions(), wanted), unusableEvent(object, wanted))
	return modify(object, func(o model.Object) bool { return set(o.StatusConditions()) }, event), true
}

func condition(kind string, holds bool, reason, message string) model.Condition {
	status := model.ConditionFalse
	if holds {
		status = model.ConditionTrue
	}
	return model.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
