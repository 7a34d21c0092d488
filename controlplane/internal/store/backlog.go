package store

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// What one watch holds at most for whoever is slow to take it (R14). The client of etcd itself holds whatever comes.
const (
	maxWaitingEvents = 4096
	maxWaitingBytes  = 32 << 20
)

// backlog is what etcd has told of a watch and nobody has taken yet, in order.
type backlog struct {
	mutex   sync.Mutex
	batches []clientv3.WatchResponse
	events  int
	bytes   int
	closed  bool
	// news wakes whoever takes.
	news chan struct{}
}

func newBacklog() *backlog { return &backlog{news: make(chan struct{}, 1)} }

// put adds a batch, and says false where there is no room for it. The only one always has room, however large it is: etcd never
// splits what was stored at once.
func (b *backlog) put(batch clientv3.WatchResponse) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	events, bytes := weigh(batch)
	last := len(b.batches) - 1
	switch {
	case last < 0:
	case b.events+events > maxWaitingEvents, b.bytes+bytes > maxWaitingBytes:
		return false
	case isBookmark(batch) && isBookmark(b.batches[last]): // the later one says all that both do
		b.batches[last] = batch
		return true
	}
	b.batches = append(b.batches, batch)
	b.events, b.bytes = b.events+events, b.bytes+bytes
	b.wake()
	return true
}

// close says that nothing follows upon what was put.
func (b *backlog) close() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.closed = true
	b.wake()
}

func (b *backlog) wake() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// take gives the next batch, once there is one, and false where nothing follows, or the context has ended.
func (b *backlog) take(ctx context.Context) (clientv3.WatchResponse, bool) {
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
	events, bytes := weigh(batch)
	b.events, b.bytes = b.events-events, b.bytes-bytes
	return batch, true, b.closed
}

func weigh(batch clientv3.WatchResponse) (events, bytes int) {
	for _, event := range batch.Events {
		bytes += len(event.Kv.Key) + len(event.Kv.Value)
		if event.PrevKv != nil {
			bytes += len(event.PrevKv.Key) + len(event.PrevKv.Value)
		}
	}
	return len(batch.Events), bytes
}

// isBookmark says that a batch tells nothing but how far etcd has come.
func isBookmark(batch clientv3.WatchResponse) bool {
	return len(batch.Events) == 0 && batch.Err() == nil
}
