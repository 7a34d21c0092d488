package decide

import (
	"context"
	"errors"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Store is what actions change: a leader's term (store.Term), or the memory of a simulation. Each method makes one change as a
// whole or not at all. It fails if the object differs from the one on which the change was decided.
type Store interface {
	// OwnSeen changes the ownership of a volume, first as it was seen and then as it is now, provided that the records have not
	// changed.
	OwnSeen(ctx context.Context, seen *model.Volume, records []*model.RadosClients,
		change func(*model.Volume) (model.Ownership, error)) (*model.Volume, error)
	// Modify changes the status of the newest object, and returns it, changed or not.
	Modify(ctx context.Context, kind model.Kind, name string, change func(model.Object) (bool, error)) (model.Object, error)
	AddPorts(ctx context.Context, target string, ports []model.TargetPort) (*model.Target, error)
	PutJob(ctx context.Context, job model.Job) (*model.Job, error)
	DeleteJob(ctx context.Context, job *model.Job) error
	Remove(ctx context.Context, object model.Object) error
	ForgetGateway(ctx context.Context, number uint32) error
	// EvictSession returns a model.PreconditionError if the session has ended.
	EvictSession(ctx context.Context, session *model.Session) error
	FenceRadosClients(ctx context.Context, seen *model.RadosClients, clients []string) (*model.RadosClients, error)
	DropRadosClients(ctx context.Context, seen *model.RadosClients) error
}

// Stored is what an action has stored.
type Stored struct {
	// Changed reports whether the action changed anything.
	Changed bool
	// Object, Job or Clients as stored; nil if the action stores none.
	Object  model.Object
	Job     *model.Job
	Clients *model.RadosClients
}

// Execute makes the change of an action. Errors: ErrStale, and those of the store.
func Execute(ctx context.Context, store Store, a Action) (Stored, error) {
	return a.execute(ctx, store)
}

func (a *ChangeOwner) execute(ctx context.Context, store Store) (Stored, error) {
	seen, ok := a.Object.(*model.Volume)
	if !ok {
		return Stored{}, ErrStale // only the volume that the decision saw ties the change to the records of clients
	}
	volume, err := store.OwnSeen(ctx, seen, a.Records, a.Owning)
	if err != nil {
		return Stored{}, err
	}
	return Stored{Changed: true, Object: volume}, nil
}

func (a *Modify) execute(ctx context.Context, store Store) (Stored, error) {
	changed := false
	object, err := store.Modify(ctx, a.Kind, a.Name, func(object model.Object) (bool, error) {
		if object.Metadata().UID != a.UID {
			return false, ErrStale
		}
		changed = a.Change(object)
		return changed, nil
	})
	if err != nil {
		return Stored{}, err
	}
	return Stored{Changed: changed, Object: object}, nil
}

func (a *AddPorts) execute(ctx context.Context, store Store) (Stored, error) {
	target, err := store.AddPorts(ctx, a.Name, a.Ports)
	if err != nil {
		return Stored{}, err
	}
	return Stored{Changed: true, Object: target}, nil
}

func (a *GiveJob) execute(ctx context.Context, store Store) (Stored, error) {
	job, err := store.PutJob(ctx, *a.Job)
	return Stored{Changed: err == nil, Job: job}, err
}

func (a *DropJob) execute(ctx context.Context, store Store) (Stored, error) {
	return Stored{Changed: true}, store.DeleteJob(ctx, a.Job)
}

func (a *Remove) execute(ctx context.Context, store Store) (Stored, error) {
	return Stored{Changed: true}, store.Remove(ctx, a.Object)
}

func (a *ForgetGateway) execute(ctx context.Context, store Store) (Stored, error) {
	return Stored{Changed: true}, store.ForgetGateway(ctx, a.Number)
}

// execute changes nothing if the session has ended meanwhile.
func (a *Evict) execute(ctx context.Context, store Store) (Stored, error) {
	err := store.EvictSession(ctx, a.Session)
	var ended *model.PreconditionError
	if errors.As(err, &ended) {
		return Stored{}, nil
	}
	return Stored{Changed: err == nil}, err
}

func (a *FenceClients) execute(ctx context.Context, store Store) (Stored, error) {
	record, err := store.FenceRadosClients(ctx, a.Record, a.Clients)
	return Stored{Changed: err == nil, Clients: record}, err
}

func (a *DropClients) execute(ctx context.Context, store Store) (Stored, error) {
	return Stored{Changed: true}, store.DropRadosClients(ctx, a.Record)
}
