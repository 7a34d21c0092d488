package store

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Limits of the events that one watch buffers for a slow receiver (R14). The etcd client itself has no limit.
const (
	maxWaitingEvents = 4096
	maxWaitingBytes  = 32 << 20
)

// backlog has the events that etcd has sent for a watch and that the receiver has not taken yet, in order.
type backlog struct {
	mutex   sync.Mutex
	batches []clientv3.WatchResponse
	events  int
	bytes   int
	closed  bool
	// news wakes the receiver.
	news chan struct{}
}

func newBacklog() *backlog { return &backlog{news: make(chan struct{}, 1)} }

// put adds a batch. It returns false if the backlog is full. An empty backlog accepts any batch regardless of its size, because
// etcd never splits the writes of one transaction.
func (b *backlog) put(batch clientv3.WatchResponse) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	events, bytes := batchSize(batch)
	last := len(b.batches) - 1
	switch {
	case last < 0:
	case b.events+events > maxWaitingEvents, b.bytes+bytes > maxWaitingBytes:
		return false
	case isBookmark(batch) && isBookmark(b.batches[last]): // the later bookmark includes the earlier one
		b.batches[last] = batch
		return true
	}
	b.batches = append(b.batches, batch)
	b.events, b.bytes = b.events+events, b.bytes+bytes
	b.notifyReader()
	return true
}

// close marks the end: no batch follows.
func (b *backlog) close() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.closed = true
	b.notifyReader()
}

func (b *backlog) notifyReader() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// nextBatch returns the next batch, and waits for it. It returns false if no batch follows or the context has ended.
func (b *backlog) nextBatch(ctx context.Context) (clientv3.WatchResponse, bool) {
	for {
		if batch, ok, closed := b.first(); ok || closed {
			return batch, ok
		}
		select {
		case <-b.news:
		case <-ctx.Done():
			return clientv3.WatchResponse{}, false
		}
	}
}

func (b *backlog) first() (batch clientv3.WatchResponse, ok, closed bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.batches) == 0 {
		return batch, false, b.closed
	}
	batch = b.batches[0]
	b.batches[0] = clientv3.WatchResponse{} // else the slice keeps its events
	b.batches = b.batches[1:]
	events, bytes := batchSize(batch)
	b.events, b.bytes = b.events-events, b.bytes-bytes
	return batch, true, b.closed
}

func batchSize(batch clientv3.WatchResponse) (events, bytes int) {
	for _, event := range batch.Events {
		bytes += len(event.Kv.Key) + len(event.Kv.Value)
		if event.PrevKv != nil {
			bytes += len(event.PrevKv.Key) + len(event.PrevKv.Value)
		}
	}
	return len(batch.Events), bytes
}

// isBookmark reports whether a batch has no events and only reports etcd's progress.
func isBookmark(batch clientv3.WatchResponse) bool {
	return len(batch.Events) == 0 && batch.Err() == nil
}
