package store

import (
	"context"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// batchUpTo returns a batch of this number of events, each with a value of this number of bytes, of versions up to `version`.
func batchUpTo(version int64, events, bytes int) clientv3.WatchResponse {
	batch := clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: version}}
	for i := range events {
		batch.Events = append(batch.Events, &clientv3.Event{Kv: &mvccpb.KeyValue{Value: make([]byte, bytes),
			ModRevision: version - int64(events-1-i)}})
	}
	return batch
}

func TestABacklogHoldsSoManyEventsAndBytesAndNoMore(t *testing.T) {
	for name, c := range map[string]struct{ events, bytes, room int }{
		"events": {1000, 1, maxWaitingEvents / 1000}, "bytes": {1, maxWaitingBytes / 3, 3},
		"one batch, however large": {maxWaitingEvents + 1, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBacklog()
			for i := range c.room {
				if !b.put(batchUpTo(int64(i), c.events, c.bytes)) {
					t.Fatalf("no room for batch %d", i)
				}
			}
			if b.put(batchUpTo(99, c.events, c.bytes)) {
				t.Fatal("it holds more than it may")
			}
			if _, ok := b.nextBatch(t.Context()); !ok || !b.put(batchUpTo(99, c.events, c.bytes)) {
				t.Fatal("a batch that was read frees no space")
			}
		})
	}
}

func TestBookmarksThatAreNotReadBecomeOne(t *testing.T) {
	b := newBacklog()
	b.put(batchUpTo(5, 2, 1))
	for version := range int64(10_000) {
		if !b.put(batchUpTo(10+version, 0, 0)) {
			t.Fatal("no room for a bookmark")
		}
	}
	b.close()
	var versions []int64
	for {
		batch, ok := b.nextBatch(t.Context())
		if !ok {
			break
		}
		versions = append(versions, reached(batch))
	}
	if len(versions) != 2 || versions[0] != 5 || versions[1] != 10_009 {
		t.Fatal(versions)
	}
}

func TestReadingABacklogEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, ok := newBacklog().nextBatch(ctx); ok {
		t.Fatal("took what is not there")
	}
}
