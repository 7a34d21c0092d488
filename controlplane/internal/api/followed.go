package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// followAgain is the pause before a failed watch is started again.
const followAgain = 500 * time.Millisecond

// followed is a copy of records of the store, by key. It is safe for concurrent use.
type followed[K comparable, T any] struct {
	key func(T) K
	// changed is called after each change, and must not block; nil: it is not needed.
	changed func()

	mutex   sync.Mutex
	records map[K]T
	// seen has the keys since a Reset; nil: the copy is complete.
	seen map[K]bool
	// whole: the copy was complete once.
	whole bool
}

func newFollowed[K comparable, T any](key func(T) K) *followed[K, T] {
	return &followed[K, T]{key: key, records: map[K]T{}}
}

// all returns the records in no order.
func (f *followed[K, T]) all() []T {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	all := make([]T, 0, len(f.records))
	for _, record := range f.records {
		all = append(all, record)
	}
	return all
}

func (f *followed[K, T]) get(key K) (T, bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	record, known := f.records[key]
	return record, known
}

func (f *followed[K, T]) complete() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.whole
}

func (f *followed[K, T]) apply(c store.RecordChange[T]) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.changed != nil {
		defer f.changed()
	}
	switch c.Type {
	case store.Reset:
		f.seen = map[K]bool{}
	case store.Put:
		f.records[f.key(c.Record)] = c.Record
		if f.seen != nil {
			f.seen[f.key(c.Record)] = true
		}
	case store.Deleted:
		delete(f.records, f.key(c.Record))
	case store.Bookmark:
		if f.seen != nil {
			for key := range f.records {
				if !f.seen[key] {
					delete(f.records, key)
				}
			}
		}
		f.seen, f.whole = nil, true
	}
	return nil
}

// run applies what a watch reports until the context ends. A failed watch is started again; until then the copy gets older.
func (f *followed[K, T]) run(ctx context.Context, what string, log *slog.Logger,
	watch func(context.Context, int64, func(store.RecordChange[T]) error) error,
) error {
	for {
		err := watch(ctx, 0, f.apply)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log.Warn("a watch of the store failed; it starts again", "of", what, "problem", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followAgain):
		}
	}
}

// sessionKey identifies a session: a TSIH is reused only after the session has ended.
type sessionKey struct{ gateway, tsih uint32 }

// path returns a session without what findings do not need, so that a replica holds many sessions in little memory.
func path(s *model.Session) *model.Session {
	return &model.Session{GatewayNumber: s.GatewayNumber, TSIH: s.TSIH, TargetIQN: s.TargetIQN, HostUID: s.HostUID, Initiator: s.Initiator,
		PortalGroupTag: s.PortalGroupTag}
}
