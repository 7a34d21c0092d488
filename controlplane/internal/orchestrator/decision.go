package orchestrator

import (
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
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

// Action is one change of the store, made for an object as it was seen. Exactly one of Own … DropClients is set.
type Action struct {
	Kind model.Kind
	Name string
	UID  string
	// Object as it was seen, for events; nil for a job whose object is gone.
	Object model.Object

	// Own changes who owns a volume.
	Own *OwnChange
	// Modify changes an object's status and says whether it did. It may be called anew on a newer object.
	Modify func(model.Object) bool
	// Ports that a target has to have.
	Ports []model.TargetPort
	// Job to give out, and one to forget.
	Job     *store.Job
	DropJob *store.Job
	// Remove takes an object away whose deletion was asked for.
	Remove model.Object
	// Forget what a gateway of this number observed.
	Forget uint32
	// Evict asks a session to log out.
	Evict *Eviction
	// FenceClients is a record of which Clients are blocklisted by now.
	FenceClients *store.RadosClients
	Clients      []string
	// DropClients is a record that nothing waits for any more.
	DropClients *store.RadosClients

	// Event to record when it is done.
	Event *Event
	// Done tells the view what the store does not keep.
	Done func(view *View, now time.Time)
}

// Eviction is a session that shall end, and why: one of the Evict… reasons.
type Eviction struct {
	Session *model.Session
	Reason  string
}

// OwnChange is a change of ownership that holds for exactly one ownership, the one it was decided on.
type OwnChange struct {
	From   model.Ownership
	Change func(model.Ownership) (model.Ownership, error)
	// Reason of the change: one CamelCase word.
	Reason string
	// Request that this change carries out or ends, nil where there is none.
	Request *model.MoveRequest
	// Records are of the clients of whoever is shut out, and of whoever is given a volume in Ceph: the change holds only while
	// they are as they were seen.
	Records []*store.RadosClients
	// Counted says that it was decided on by how many other moves are under way: few are decided on at the same time.
	Counted bool

	// conditions that hold with it, as of a time; none: they are told apart from it.
	conditions []model.Condition
	at         time.Time
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
	AlarmPathsNotRedundant = "PathsNotRedundant"
	AlarmGatewayDead       = "GatewayDead"
)

func (d *Decision) add(actions ...Action) { d.Actions = append(d.Actions, actions...) }

// wait shortens the time until the next look.
func (d *Decision) wait(left time.Duration) {
	if left > 0 && (d.Wait == 0 || left < d.Wait) {
		d.Wait = left
	}
}

func about(object model.Object) Action {
	meta := object.Metadata()
	return Action{Kind: object.Kind(), Name: meta.Name, UID: meta.UID, Object: object}
}

func modify(object model.Object, change func(model.Object) bool, event *Event) Action {
	a := about(object)
	a.Modify, a.Event = change, event
	return a
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
	have := slices.Clone(*conditionsOf(object))
	if !set(&have) {
		return Action{}, false
	}
	event := appliedEvent(*conditionsOf(object), wanted)
	return modify(object, func(o model.Object) bool { return set(conditionsOf(o)) }, event), true
}

func conditionsOf(object model.Object) *[]model.Condition {
	switch o := object.(type) {
	case *model.Volume:
		return &o.Status.Conditions
	case *model.Target:
		return &o.Status.Conditions
	case *model.Snapshot:
		return &o.Status.Conditions
	case *model.StoragePool:
		return &o.Status.Conditions
	case *model.Gateway:
		return &o.Status.Conditions
	}
	return &[]model.Condition{}
}

func condition(kind string, is bool, reason, message string) model.Condition {
	status := model.ConditionFalse
	if is {
		status = model.ConditionTrue
	}
	return model.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
