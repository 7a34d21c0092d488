package decide

import (
	"context"
	"errors"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// ErrStale means that the object has changed since the decision. The watch delivers the newer one.
var ErrStale = errors.New("it has changed meanwhile")

// Action is one change of the store, made for an object as the decision saw it. This file has all types of actions: execute is
// unexported, so no other package defines one, and the compiler requires it of each type.
type Action interface {
	// About returns the subject of the action.
	About() *Subject
	execute(context.Context, Store) (Stored, error)
}

// Subject is the object of an action, and what follows once the action is stored.
type Subject struct {
	Kind model.Kind
	Name string
	UID  string
	// Object as the decision saw it, for events; nil for a job whose object is gone.
	Object model.Object

	// Event to record when the action is done.
	Event *Event
	// Done updates the parts of the view that are not stored.
	Done func(view *LeaderView, now time.Time)
}

// About implements Action.
func (s *Subject) About() *Subject { return s }

// about returns the subject of an action for an object as the decision saw it.
func about(object model.Object) Subject {
	meta := object.Metadata()
	return Subject{Kind: object.Kind(), Name: meta.Name, UID: meta.UID, Object: object}
}

// ChangeOwner changes the ownership of a volume. The leader stores it only if the ownership is still the one that the decision used.
type ChangeOwner struct {
	Subject
	From   model.Ownership
	Change func(model.Ownership) (model.Ownership, error)
	// Reason of the change: one CamelCase word.
	Reason string
	// Request that this change carries out or ends; nil: none.
	Request *model.MoveRequest
	// Records of the clients of gateways that are fenced, and of gateways that get a volume in Ceph. The change is stored only if
	// they have not changed.
	Records []*model.RadosClients
	// Counted: the decision depends on the number of other moves in progress. Few such decisions are made at the same time.
	Counted bool

	// parties are the names of the gateways in the decision, by number, because it is executed without the view.
	parties map[uint32]string
	// conditions are stored with the change, as of the time at; none: they are stored separately.
	conditions []model.Condition
	at         time.Time
}

// Modify changes an object's status.
type Modify struct {
	Subject
	// Change returns whether it changed the object. It may be called again on a newer object.
	Change func(model.Object) bool
}

// AddPorts adds the ports that a target must have.
type AddPorts struct {
	Subject
	Ports []model.TargetPort
}

// GiveJob assigns a job.
type GiveJob struct {
	Subject
	Job *model.Job
}

// DropJob deletes a job.
type DropJob struct {
	Subject
	Job *model.Job
}

// Remove removes its object, whose deletion was requested.
type Remove struct{ Subject }

// ForgetGateway deletes all reports of the gateway with this number.
type ForgetGateway struct {
	Subject
	Number uint32
}

// Evict asks a session to log out.
type Evict struct {
	Subject
	Session *model.Session
	// Reason is one of the Evict… reasons.
	Reason string
}

// FenceClients marks clients of a record as blocklisted.
type FenceClients struct {
	Subject
	Record  *model.RadosClients
	Clients []string
}

// DropClients deletes a record for which nothing waits any more.
type DropClients struct {
	Subject
	Record *model.RadosClients
}

// modify returns an action that changes the status of an object.
func modify(object model.Object, change func(model.Object) bool, event *Event) *Modify {
	a := &Modify{Subject: about(object), Change: change}
	a.Event = event
	return a
}

// drop returns the action that deletes a job.
func drop(object model.Object, job *model.Job) *DropJob {
	return &DropJob{Subject: about(object), Job: job}
}
