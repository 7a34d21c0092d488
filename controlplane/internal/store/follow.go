package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// errBehind ends a watch of etcd because its receiver is too slow. follow continues after the last event that it has reported.
var errBehind = errors.New("the watch is behind")

// follow calls tell for all events below a prefix after *after, in order. After each batch it sets *after to the version up to
// which everything was reported, and calls bookmark. It returns rpctypes.ErrCompacted if etcd no longer has the events.
//
// For a slow receiver it buffers at most one backlog. Beyond that it cancels the watch of etcd and later starts another one after
// the last reported event, because etcd keeps events on its disk for minutes.
func (s *Store) follow(ctx context.Context, prefix string, after *int64, tell func(event *clientv3.Event, resume int64) error,
	bookmark func(version int64) error,
) error {
	for {
		if err := s.followOnce(ctx, prefix, after, tell, bookmark); !errors.Is(err, errBehind) {
			return err
		}
	}
}

func (s *Store) followOnce(ctx context.Context, prefix string, after *int64, tell func(event *clientv3.Event, resume int64) error,
	bookmark func(version int64) error,
) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	waiting, full := newBacklog(), false
	watch := s.client.Watch(clientv3.WithRequireLeader(watching), prefix, clientv3.WithPrefix(),
		clientv3.WithProgressNotify(), clientv3.WithRev(*after+1))
	go func() {
		defer waiting.close()
		for batch := range watch {
			if !waiting.put(batch) {
				full = true // the receiver sees it once the backlog is closed
				stop()      // at the server and in the client, which would buffer all events
				return
			}
		}
	}()
	for {
		batch, ok := waiting.nextBatch(ctx)
		if !ok {
			break
		}
		if batch.CompactRevision != 0 {
			return rpctypes.ErrCompacted
		}
		if err := batch.Err(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if err := s.readDeleted(ctx, batch.Events); err != nil {
			return err
		}
		for i, event := range batch.Events {
			if err := tell(event, resume(batch.Events, i)); err != nil {
				return err
			}
		}
		*after = reached(batch)
		if err := bookmark(*after); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case full:
		return errBehind
	}
	return errors.New("store: the watch ended")
}

// readBatch bounds the reads of one request. It is below etcd's default limit of 128.
const readBatch = 100

// readDeleted fills in the last state of deleted keys. A watch could request it (WithPrevKV), but then etcd would read the
// previous value of each change, and most changes are no deletions.
func (s *Store) readDeleted(ctx context.Context, events []*clientv3.Event) error {
	var deletions []*clientv3.Event
	for _, event := range events {
		if event.Type == clientv3.EventTypeDelete {
			deletions = append(deletions, event)
		}
	}
	for some := range slices.Chunk(deletions, readBatch) {
		var reads []clientv3.Op
		for _, event := range some {
			reads = append(reads, clientv3.OpGet(string(event.Kv.Key), clientv3.WithRev(event.Kv.ModRevision-1)))
		}
		read, err := s.client.Txn(ctx).Then(reads...).Commit()
		if err != nil {
			return lost(err)
		}
		for i, event := range some {
			if was := read.Responses[i].GetResponseRange().Kvs; len(was) > 0 {
				event.PrevKv = was[0]
			}
		}
	}
	return nil
}

// lost returns the error that ends a watch. After ErrCompacted the caller reads all objects again.
func lost(err error) error {
	if isCompacted(err) {
		return rpctypes.ErrCompacted
	}
	return fmt.Errorf("store: %w", err)
}

// resume returns Change.Resume for an event of a batch that contains all events of its version.
func resume(batch []*clientv3.Event, event int) int64 {
	version := batch[event].Kv.ModRevision
	if event+1 < len(batch) && batch[event+1].Kv.ModRevision == version {
		return version - 1
	}
	return version
}

// reached returns the version up to which a batch reports everything. To a watch that is far behind, etcd sends a thousand
// versions at a time, and the header of each batch has etcd's present version. Only a batch without events proves that everything
// up to the header's version was sent. A version is never split: neither by etcd (eventBatch.add in mvcc/watcher_group.go), nor
// by the transport, because fragments are not requested.
func reached(batch clientv3.WatchResponse) int64 {
	if last := len(batch.Events) - 1; last >= 0 {
		return batch.Events[last].Kv.ModRevision
	}
	return batch.Header.Revision
}
