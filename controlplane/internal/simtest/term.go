package simtest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// Errors of a term's changes. The text does not matter: the leader decides again when it receives the newer state.
var (
	errDeposed = errors.New("another replica leads")
	errChanged = errors.New("the object has changed, or is gone")
)

// term makes the changes of one action, as store.Term does in etcd, and checks each. It refuses the changes of a deposed leader,
// except changes of ownership: for these, compare-and-swap alone must be sufficient.
type term struct {
	*Simulation
	action decide.Action
	by     *leader
	// logRead is the part of the log on which the action was decided.
	logRead int
}

func (t *term) deposed() bool { return t.by != t.leaders[len(t.leaders)-1] }

// OwnSeen implements decide.Store.
func (t *term) OwnSeen(_ context.Context, seen *model.Volume, records []*model.RadosClients,
	change func(*model.Volume) (model.Ownership, error),
) (*model.Volume, error) {
	volume := t.volume(seen.Meta.Name)
	if volume == nil {
		return nil, errChanged
	}
	changed := copyOf(volume).(*model.Volume)
	if t.broken == NoCompareAndSwap {
		changed.Status.Ownership = seen.Status.Ownership
	}
	next, err := change(changed)
	if err != nil {
		return nil, err
	}
	gone := func(r *model.RadosClients) bool { return !t.store.unchanged(r) }
	if slices.ContainsFunc(records, gone) && t.broken != NoRecordGuard && t.broken != UnknownIsFenced {
		return nil, errChanged
	}
	if t.broken == NoLock && next.State == model.Acquiring {
		next, _ = next.Locked(next.Next)
	}
	next = volume.Status.Ownership.Ordered(next, t.now)
	t.checkOwn(t.action.(*decide.ChangeOwner), volume, changed, next)
	t.checkNotRemoved(volume, next, t.logRead)
	changed.Status.Ownership = next
	t.store.put(changed)
	return changed, nil
}

// Modify implements decide.Store.
func (t *term) Modify(_ context.Context, kind model.Kind, name string, change func(model.Object) (bool, error)) (model.Object, error) {
	object := t.store.objects[decide.Key{Kind: kind, Name: name}]
	if object == nil || t.deposed() {
		return nil, errChanged
	}
	changed := copyOf(object)
	if needed, err := change(changed); err != nil || !needed {
		return object, err
	}
	t.checkModify(t.action.About().Object, object, changed, t.logRead)
	t.store.put(changed)
	return changed, nil
}

// AddPorts implements decide.Store.
func (t *term) AddPorts(ctx context.Context, target string, ports []model.TargetPort) (*model.Target, error) {
	object, err := t.Modify(ctx, model.KindTarget, target, func(o model.Object) (bool, error) {
		target := o.(*model.Target)
		missing := target.WithoutPorts(ports)
		for _, port := range missing {
			t.store.ports++
			port.RelativePortID = t.store.ports
			target.Status.Ports = append(target.Status.Ports, port)
		}
		return len(missing) > 0, nil
	})
	if err != nil {
		return nil, err
	}
	return object.(*model.Target), nil
}

// PutJob implements decide.Store.
func (t *term) PutJob(_ context.Context, job model.Job) (*model.Job, error) {
	if t.deposed() {
		return nil, errDeposed
	}
	known := t.store.jobs[job.ID]
	if known != nil && known.Version != job.Version || known == nil && job.Version != 0 {
		return nil, errChanged
	}
	if job.Action.NeedsObject() && t.broken != NoJobGuard {
		if o := t.store.objects[decide.Key{Kind: job.Kind, Name: job.Name}]; o == nil || o.Metadata().Deleting() {
			return nil, errChanged // nothing is made any more for a deleted object
		}
	}
	job = job.GivenOut(t.now)
	if job.Action == model.JobFenceClients {
		t.checkFence(t.action.(*decide.GiveJob))
		if t.broken == NoFence {
			job.Result = model.JobResult{DonePermille: model.JobDone, At: t.now}
		}
	}
	return t.store.putJob(job), nil
}

// DeleteJob implements decide.Store.
func (t *term) DeleteJob(_ context.Context, job *model.Job) error {
	if t.deposed() {
		return errDeposed
	}
	if known := t.store.jobs[job.ID]; known != nil && known.Version == job.Version {
		t.store.dropJob(known)
	}
	return nil
}

// Remove implements decide.Store.
func (t *term) Remove(_ context.Context, seen model.Object) error {
	object := t.store.objects[keyOf(seen)]
	if object == nil || object.Metadata().UID != seen.Metadata().UID || object.Metadata().Version != seen.Metadata().Version ||
		!object.Metadata().Deleting() || t.deposed() {
		return errChanged
	}
	for id := range t.store.jobs {
		if strings.HasPrefix(id, object.Metadata().UID+".") && t.broken != NoJobGuard {
			return errChanged
		}
	}
	switch o := object.(type) {
	case *model.Volume:
		t.checkVolumeGoes(o)
	case *model.Snapshot:
		t.checkSnapshotGoes(o)
	case *model.Gateway:
		t.removeGateway(o, t.logRead)
		return nil
	}
	t.store.remove(object)
	return nil
}

// ForgetGateway implements decide.Store. The memory keeps all reports: reports of a removed gateway must be harmless.
func (t *term) ForgetGateway(context.Context, uint32) error {
	if t.deposed() {
		return errDeposed
	}
	return nil
}

// EvictSession implements decide.Store: there are no sessions here.
func (t *term) EvictSession(_ context.Context, session *model.Session) error {
	return model.Precondition("name", "session %s is over", session.Name())
}

// FenceRadosClients implements decide.Store.
func (t *term) FenceRadosClients(_ context.Context, seen *model.RadosClients, clients []string) (*model.RadosClients, error) {
	if t.deposed() {
		return nil, errDeposed
	}
	if !t.store.unchanged(seen) {
		return nil, errChanged
	}
	t.checkNoted(clients)
	return t.store.putClients(seen.WithFenced(clients)), nil
}

// DropRadosClients implements decide.Store.
func (t *term) DropRadosClients(_ context.Context, seen *model.RadosClients) error {
	if t.deposed() {
		return errDeposed
	}
	stream := t.store.records["connection/"+t.names[seen.Gateway.Number-1]].Connection
	connected := stream != nil && stream.Ref == seen.Gateway
	if t.store.unchanged(seen) && !connected && !slices.ContainsFunc(t.volumes(), seen.IsPartyOf) {
		t.store.dropClients(seen)
	}
	return nil
}
