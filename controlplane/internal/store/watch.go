package store

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// ChangeType is the type of a Change.
type ChangeType int

// The types of changes.
const (
	// Reset: the receiver must discard all objects. The present objects follow, then a Bookmark.
	Reset ChangeType = iota
	// Put: the object is new, has changed, or was there already.
	Put
	// Deleted: the object was removed; Object is its last state.
	Deleted
	// Bookmark: all changes up to Version have been reported.
	Bookmark
)

// Change is one step of a watch.
type Change[T model.Object] struct {
	Type ChangeType
	// Object is nil for Reset and Bookmark. Several watches share it, so receivers must not change it.
	Object  T
	Version int64
	// Resume is the version after which a watch continues once this change has been processed. It is below Version while other
	// changes of the same version follow. It is 0, which restarts the watch, from a Reset to its Bookmark.
	Resume int64
}

// Watch calls tell for every change after a version, in order, until tell fails or the context ends, and returns the cause.
// Version 0, and a version that was compacted away, begin with Reset and all objects.
//
// A slow tell delays only this watch, which buffers a bounded backlog and leaves the rest in etcd. If etcd has compacted events
// before tell could receive them, which takes minutes, the watch restarts with Reset.
func (c *Collection[T]) Watch(ctx context.Context, after int64, tell func(Change[T]) error) error {
	for {
		if after == 0 {
			version, err := c.sendAll(ctx, tell)
			if err != nil {
				return err
			}
			after = version
		}
		err := c.follow(ctx, &after, tell)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return err
		}
		after = 0
	}
}

// WatchKind is Collection.Watch for the objects of a kind.
func (s *Store) WatchKind(ctx context.Context, kind model.Kind, after int64, tell func(Change[model.Object]) error) error {
	return s.collections[kind].watchAny(ctx, after, tell)
}

func (c *Collection[T]) watchAny(ctx context.Context, after int64, tell func(Change[model.Object]) error) error {
	return c.Watch(ctx, after, func(change Change[T]) error {
		untyped := Change[model.Object]{Type: change.Type, Version: change.Version, Resume: change.Resume}
		if change.Type == Put || change.Type == Deleted {
			untyped.Object = change.Object
		}
		return tell(untyped)
	})
}

// Revision returns the store's present version, linearizably: it includes every write that was completed before the call.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	got, err := s.client.Get(ctx, s.prefix+"revision", clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return got.Header.Revision, nil
}

// AskProgress makes every watch report a Bookmark soon, including watches of kinds without changes.
func (s *Store) AskProgress(ctx context.Context) error {
	if err := s.client.RequestProgress(clientv3.WithRequireLeader(ctx)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (c *Collection[T]) sendAll(ctx context.Context, tell func(Change[T]) error) (int64, error) {
	objects, version, err := c.All(ctx)
	if err != nil {
		return 0, err
	}
	if err := tell(Change[T]{Type: Reset, Version: version}); err != nil {
		return 0, err
	}
	for _, object := range objects {
		if err := tell(Change[T]{Type: Put, Object: object, Version: object.Metadata().Version}); err != nil {
			return 0, err
		}
	}
	return version, tell(Change[T]{Type: Bookmark, Version: version, Resume: version})
}

func (c *Collection[T]) follow(ctx context.Context, after *int64, tell func(Change[T]) error) error {
	return c.store.follow(ctx, c.prefix(), after, func(event *clientv3.Event, resume int64) error {
		change, err := c.change(event)
		if err != nil {
			return err
		}
		change.Resume = resume
		return tell(change)
	}, func(version int64) error {
		return tell(Change[T]{Type: Bookmark, Version: version, Resume: version})
	})
}

func (c *Collection[T]) change(event *clientv3.Event) (Change[T], error) {
	key := string(event.Kv.Key)
	if event.Type == mvccpb.PUT {
		object, err := c.recent.decodeOnce(key, event.Kv.Value, event.Kv.ModRevision, func() (T, error) {
			return c.decode(key, event.Kv.Value, event.Kv.ModRevision)
		})
		return Change[T]{Type: Put, Object: object, Version: event.Kv.ModRevision}, err
	}
	c.recent.forget(key)
	if event.PrevKv == nil {
		return Change[T]{}, rpctypes.ErrCompacted
	}
	object, err := c.decode(key, event.PrevKv.Value, event.Kv.ModRevision)
	return Change[T]{Type: Deleted, Object: object, Version: event.Kv.ModRevision}, err
}

func isCompacted(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) }
