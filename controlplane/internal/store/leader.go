package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"sluice.dev/sluice/controlplane/internal/model"
)

// LeaderTTL is the time for which a dead leader delays the next election.
const LeaderTTL = 3 * time.Second

// ErrDeposed means that the caller is no longer the leader and that nothing was changed.
var ErrDeposed = errors.New("this replica is not the leader any more")

// Term is one replica's time as the leader. Only the election makes one, and only its methods make the changes that R1 reserves
// for the leader. Each of their transactions compares that the term has not ended (ErrDeposed). So the writes of an old leader
// never mix with those of a new one, however late the old one learns that it was deposed.
type Term struct {
	// Version is the store's version when the term began. Everything that was stored before has a smaller one.
	Version int64
	store   *Store
	key     string
}

// Lead waits until this replica is the leader and calls lead. The leadership ends when lead returns or the context ends. The
// context that lead gets ends when the leadership is lost. Candidates wait in the order of their arrival.
func (s *Store) Lead(ctx context.Context, replica string, lead func(context.Context, *Term) error) error {
	session, err := concurrency.NewSession(s.client, concurrency.WithTTL(int(LeaderTTL/time.Second)),
		concurrency.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("store: leader: %w", err)
	}
	defer func() { _ = session.Close() }() // if this fails, the lease expires
	election := concurrency.NewElection(session, s.prefix+"leader")
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // a candidate whose lease expired would wait without end
		select {
		case <-session.Done():
			stop()
		case <-waiting.Done():
		}
	}()
	if err := election.Campaign(waiting, replica); err != nil {
		return fmt.Errorf("store: leader: %w", err)
	}
	return lead(waiting, &Term{Version: election.Rev(), store: s, key: election.Key()})
}

// Leader returns the name of the leading replica; empty: none.
func (s *Store) Leader(ctx context.Context) (string, error) {
	got, err := s.client.Get(ctx, s.prefix+"leader/", clientv3.WithFirstCreate()...)
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return "", nil
	}
	return string(got.Kvs[0].Value), nil
}

// Replicas returns the number of replicas that lead or wait to lead. One that has ended counts until its lease ends, after LeaderTTL.
func (s *Store) Replicas(ctx context.Context) (int, error) {
	got, err := s.client.Get(ctx, s.prefix+"leader/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return int(got.Count), nil
}

// begin returns a transaction that is committed only during the term.
func (term *Term) begin() *tx {
	t := &tx{}
	term.guard(t)
	return t
}

// guard makes a transaction compare that the term has not ended. An ended term is the first cause that a failed transaction looks for.
func (term *Term) guard(t *tx) {
	same := clientv3.Compare(clientv3.CreateRevision(term.key), "=", term.Version)
	t.compares = append([]clientv3.Cmp{same}, t.compares...)
	t.causes = append([]func(context.Context) error{term.ended}, t.causes...)
}

// ended returns ErrDeposed if the term has ended.
func (term *Term) ended(ctx context.Context) error {
	got, err := term.store.client.Get(ctx, term.key, clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 || got.Kvs[0].CreateRevision != term.Version {
		return ErrDeposed
	}
	return nil
}

// Modify changes the status of an object, and repeats the change while other writers come first. change returns false if there is
// nothing to do. It must not modify the spec. Errors: ErrDeposed, NotFoundError, ErrBusy, and those of change.
func (term *Term) Modify(ctx context.Context, kind model.Kind, name string, change func(model.Object) (bool, error)) (model.Object, error) {
	return term.store.collections[kind].modifyIn(ctx, term, name, change)
}

// Remove removes an object whose deletion was requested, at its version. Errors: ErrDeposed, NotFoundError, ConflictError,
// PreconditionError if its deletion was not requested.
func (term *Term) Remove(ctx context.Context, object model.Object) error {
	return term.store.collections[object.Kind()].removeIn(ctx, term, object)
}

// collection is a Collection of any kind.
type collection interface {
	watchAny(context.Context, int64, func(Change[model.Object]) error) error
	modifyIn(context.Context, *Term, string, func(model.Object) (bool, error)) (model.Object, error)
	removeIn(context.Context, *Term, model.Object) error
}

func (c *Collection[T]) modifyIn(ctx context.Context, term *Term, name string, change func(model.Object) (bool, error)) (model.Object, error) {
	return c.modify(ctx, name, func(object T) (bool, error) { return change(object) }, func(t *tx) error {
		term.guard(t)
		return nil
	})
}

func (c *Collection[T]) removeIn(ctx context.Context, term *Term, object model.Object) error {
	return c.remove(ctx, term.begin(), object.(T))
}
