package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// LeaderTTL is how long a leader that died stays in the way of the next one.
const LeaderTTL = 3 * time.Second

// ErrDeposed says that the caller is not the leader any more: nothing was changed.
var ErrDeposed = errors.New("this replica is not the leader any more")

// Term is one replica's time as the leader.
type Term struct {
	// Version is the store's when it began: what was stored before has a smaller one.
	Version int64
	key     string
}

type termKey struct{}

// Lead waits until this replica is the leader, calls lead, and gives the leadership up when that returns, or when the
// context ends. The context that lead gets ends when the leadership is lost; whatever is written with it is
// stored only while the leadership lasts (ErrDeposed), so an old leader's writes never mix with a new one's, however
// late it hears of it. Candidates wait in the order in which they came.
func (s *Store) Lead(ctx context.Context, replica string, lead func(context.Context, Term) error) error {
	session, err := concurrency.NewSession(s.client, concurrency.WithTTL(int(LeaderTTL/time.Second)),
		concurrency.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("store: leader: %w", err)
	}
	defer func() { _ = session.Close() }() // what fails here expires
	election := concurrency.NewElection(session, s.prefix+"leader")
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // a candidate whose lease expired would wait for ever
		select {
		case <-session.Done():
			stop()
		case <-waiting.Done():
		}
	}()
	if err := election.Campaign(waiting, replica); err != nil {
		return fmt.Errorf("store: leader: %w", err)
	}
	term := Term{Version: election.Rev(), key: election.Key()}
	return lead(context.WithValue(waiting, termKey{}, term), term)
}

// Leader tells who leads, empty: nobody.
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

// compareTerm adds to a transaction of a leader that it is the leader still.
func compareTerm(ctx context.Context, s *Store, t *tx) []clientv3.Cmp {
	term, leads := ctx.Value(termKey{}).(Term)
	if !leads {
		return t.compares
	}
	same := clientv3.Compare(clientv3.CreateRevision(term.key), "=", term.Version)
	t.causes = append([]func(context.Context) error{func(ctx context.Context) error {
		got, err := s.client.Get(ctx, term.key, clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if len(got.Kvs) == 0 || got.Kvs[0].CreateRevision != term.Version {
			return ErrDeposed
		}
		return nil
	}}, t.causes...)
	return append([]clientv3.Cmp{same}, t.compares...)
}
