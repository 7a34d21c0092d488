package decide

import (
	"context"
	"errors"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// ErrStale says that the object has changed since the decision. The watch delivers the newer one.
var ErrStale = errors.New("it has changed meanwhile")

// Action is one change of the store, made for an object as it was seen. The types in this file are all actions that exist: execute is
// unexported, so no other package defines one, and the compiler requires it of each type.
type Action interface {
	// About is what all actions have.
	About() *Subject
	execute(context.Context, Store) (Stored, error)
}

// Subject is the object that an action is for, and what follows once the action is stored.
type Subject struct {
	Kind model.Kind
	Name string
	UID  string
	// Object as it was seen, for events; nil for a job whose object is gone.
	Object model.Object

	// Event to record when it is done.
	Event *Event
	// Done tells the view what the store does not keep.
	Done func(view *LeaderView, now time.Time)
}

// About implements Action.
func (s *Subject) About() *Subject { return s }

// about is the subject of an action for an object as it was seen.
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
	// Request that this change carries out or ends, nil where there is none.
	Request *model.MoveRequest
	// Records are of the clients of gateways that are shut out, and of gateways that are given a volume in Ceph. The change holds only
	// while they are as they were seen.
	Records []*model.RadosClients
	// Counted says that it was decided on by how many other moves are under way: few are decided on at the same time.
	Counted bool

	// parties are the gateways that the decision is about, by number: it is carried out without the view.
	parties map[uint32]string
	// conditions that are stored with it, as of a time; none: they are stored separately.
	conditions []model.Condition
	at         time.Time
}

// Modify changes an object's status.
type Modify struct {
	Subject
	// Change returns whether it changed the object. It may be called again on a newer object.
	Change func(model.Object) bool
}

// AddPorts gives a target the ports that it has to have.
type AddPorts struct {
	Subject
	Ports []model.TargetPort
}

// GiveJob gives a job out.
type GiveJob struct {
	Subject
	Job *model.Job
}

// DropJob forgets a job.
type DropJob struct {
	Subject
	Job *model.Job
}

// Remove takes its object away, whose deletion was asked for.
type Remove struct{ Subject }

// ForgetGateway forgets everything that a gateway of this number observed.
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

// FenceClients notes in a record which of its clients are blocklisted.
type FenceClients struct {
	Subject
	Record  *model.RadosClients
	Clients []string
}

// DropClients forgets a record that nothing waits for any more.
type DropClients struct {
	Subject
	Record *model.RadosClients
}

// modify is an action that changes the status of an object.
func modify(object model.Object, change func(model.Object) bool, event *Event) *Modify {
	a := &Modify{Subject: about(object), Change: change}
	a.Event = event
	return a
}

// drop is the action that forgets a job.
func drop(object model.Object, job *model.Job) *DropJob {
	return &DropJob{Subject: about(object), Job: job}
}
