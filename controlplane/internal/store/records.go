package store

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// RecordChange is one step of a watch of records that are not objects: reports and jobs. The types have the same meaning as in
// Change. Record is the zero value for Reset and Bookmark.
type RecordChange[T any] struct {
	Type    ChangeType
	Record  T
	Version int64
	Resume  int64
}

// records are all keys below a prefix, with the decoder of a record.
type records[T any] struct {
	store  *Store
	prefix string
	decode func(key string, value []byte, version int64) (T, error)
}

// watch is Collection.Watch for records, with the same steps and guarantees.
func (r records[T]) watch(ctx context.Context, after int64, tell func(RecordChange[T]) error) error {
	for {
		if after == 0 {
			version, err := r.sendAll(ctx, tell)
			if err != nil {
				return err
			}
			after = version
		}
		err := r.follow(ctx, &after, tell)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return err
		}
		after = 0
	}
}

func (r records[T]) sendAll(ctx context.Context, tell func(RecordChange[T]) error) (int64, error) {
	var version int64
	from, end := r.prefix, clientv3.GetPrefixRangeEnd(r.prefix)
	for {
		got, err := r.store.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(MaxPageSize),
			clientv3.WithRev(version))
		if err != nil {
			return 0, fmt.Errorf("store: %w", err)
		}
		if version == 0 {
			version = got.Header.Revision
			if err := tell(RecordChange[T]{Type: Reset, Version: version}); err != nil {
				return 0, err
			}
		}
		for _, kv := range got.Kvs {
			record, err := r.decode(string(kv.Key), kv.Value, kv.ModRevision)
			if err != nil {
				return 0, err
			}
			if err := tell(RecordChange[T]{Type: Put, Record: record, Version: kv.ModRevision}); err != nil {
				return 0, err
			}
			from = string(kv.Key) + "\x00"
		}
		if !got.More {
			return version, tell(RecordChange[T]{Type: Bookmark, Version: version, Resume: version})
		}
	}
}

func (r records[T]) follow(ctx context.Context, after *int64, tell func(RecordChange[T]) error) error {
	return r.store.follow(ctx, r.prefix, after, func(event *clientv3.Event, resume int64) error {
		change := RecordChange[T]{Type: Put, Version: event.Kv.ModRevision, Resume: resume}
		value := event.Kv.Value
		if event.Type == clientv3.EventTypeDelete {
			if event.PrevKv == nil {
				return rpctypes.ErrCompacted
			}
			change.Type, value = Deleted, event.PrevKv.Value
		}
		var err error
		if change.Record, err = r.decode(string(event.Kv.Key), value, event.Kv.ModRevision); err != nil {
			return err
		}
		return tell(change)
	}, func(version int64) error {
		return tell(RecordChange[T]{Type: Bookmark, Version: version, Resume: version})
	})
}
