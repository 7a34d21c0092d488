package store

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// SchemaVersion is the layout that this program writes. A release reads its own layout and older ones, which it migrates.
// Replicas of an earlier release refuse to start on a newer layout; running ones must be replaced first.
const SchemaVersion = 1

// migrations[n] migrates a store from version n to n+1, in one transaction or idempotently.
var migrations = map[int]func(context.Context, *Store) error{}

// SchemaError means that a newer release wrote the store.
type SchemaError struct{ Found int }

func (e *SchemaError) Error() string {
	return fmt.Sprintf("the store has schema %d, this program knows up to %d: run the release that wrote it, or a newer one",
		e.Found, SchemaVersion)
}

// migrate brings the store to SchemaVersion. Several replicas may do it at once: each step is stored by compare-and-swap.
func (s *Store) migrate(ctx context.Context) error {
	key := s.prefix + "schema"
	return retry(ctx, func() error {
		got, err := s.client.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		found, revision := SchemaVersion, int64(0)
		if len(got.Kvs) > 0 {
			revision = got.Kvs[0].ModRevision
			if found, err = strconv.Atoi(string(got.Kvs[0].Value)); err != nil {
				return fmt.Errorf("%s in the store: %w", key, err)
			}
			if found == SchemaVersion {
				return nil
			}
		}
		if found > SchemaVersion {
			return &SchemaError{found}
		}
		next := found
		if revision != 0 {
			step := migrations[found]
			if step == nil {
				return fmt.Errorf("the store has schema %d, from which there is no way to %d", found, SchemaVersion)
			}
			if err := step(ctx, s); err != nil {
				return fmt.Errorf("migration from schema %d: %w", found, err)
			}
			next = found + 1
		}
		var t tx
		t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", revision), nil)
		t.put(key, strconv.Itoa(next))
		if _, err := s.commit(ctx, &t); err != nil {
			return err
		}
		if next != SchemaVersion {
			return errLost // continue with the next step
		}
		return nil
	})
}
