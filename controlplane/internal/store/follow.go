package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// errBehind says that a watch was given up because whoever it is told to is too slow; it goes on after what was told.
var errBehind = errors.New("the watch is behind")

// follow tells all events below a prefix after *after, in order, and keeps it up to date: after each batch of events it is what
// everything was told up to, and bookmark is called. It returns rpctypes.ErrCompacted where the events are no longer known.
//
// Whoever is slow has no more than a backlog held for it. Beyond that the watch of etcd is given up, and another one begins after
// what was told: etcd keeps what happened for minutes, on its disk.
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
				full = true // whoever takes sees it once the backlog is closed
				stop()      // at the server and in the client, which would hold all that comes
				return
			}
		}
	}()
	for {
		batch, ok := waiting.take(ctx)
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

// readBatch bounds the reads of one request, below etcd's default of 128.
const readBatch = 100

// readDeleted fills in what was deleted, as it was last. A watch could be asked for it (WithPrevKV), but then etcd reads what was before
// each change, and most are no deletions.
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

// lost is an error that ends a watch; what etcd has forgotten is told by beginning anew.
func lost(err error) error {
	if isCompacted(err) {
		return rpctypes.ErrCompacted
	}
	return fmt.Errorf("store: %w", err)
}

// resume gives Change.Resume for an event of a batch, which holds all events of a version.
func resume(batch []*clientv3.Event, event int) int64 {
	version := batch[event].Kv.ModRevision
	if event+1 < len(batch) && batch[event+1].Kv.ModRevision == version {
		return version - 1
	}
	return version
}

// reached is up to where a batch tells everything. Of a watch that is far behind, etcd sends a thousand versions at a time, each
// batch with the version of etcd's own present in its header, which only a batch without events vouches for. A version is never
// split: neither etcd does (eventBatch.add in mvcc/watcher_group.go), nor the transport, which is not asked for fragments.
func reached(batch clientv3.WatchResponse) int64 {
	if last := len(batch.Events) - 1; last >= 0 {
		return batch.Events[last].Kv.ModRevision
	}
	return batch.Header.Revision
}
