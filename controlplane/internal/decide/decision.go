package decide

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Decision is what to do for one object now.
type Decision struct {
	// Actions in order; the next one is done only if the one before was.
	Actions []Action
	// Wait until it is worth a look again even if nothing is heard; 0: for ever.
	Wait time.Duration
	// Alarm is an Alarm… reason, empty where all is well.
	Alarm string
	// RateLimited says that a gateway would be declared dead, had not too many been just before (R1).
	RateLimited bool
	// held: a volume waits until others have new owners, and all else that concerns it waits as well, for processors are what is short.
	held bool
}

// Event is for people, about an object.
type Event struct {
	Warning bool
	Reason  string
	Message string
}

// Reasons of alarms.
const (
	AlarmNoOwner           = "VolumeWithoutOwner"
	AlarmUnusable          = "VolumeDataUnusable"
	AlarmPathsNotRedundant = "PathsNotRedundant"
	AlarmGatewayDead       = "GatewayDead"
)

func (d *Decision) add(actions ...Action) { d.Actions = append(d.Actions, actions...) }

// removes says that the last action takes the object away.
func (d *Decision) removes() bool {
	if len(d.Actions) == 0 {
		return false
	}
	_, removes := d.Actions[len(d.Actions)-1].(*Remove)
	return removes
}

// wait shortens the time until the next look.
func (d *Decision) wait(left time.Duration) {
	if left > 0 && (d.Wait == 0 || left < d.Wait) {
		d.Wait = left
	}
}

// conditions is an action that brings an object's conditions up to date, and whether it is needed.
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
