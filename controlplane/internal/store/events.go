package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Bounds of the stored events.
const (
	EventAge  = 7 * 24 * time.Hour
	MaxEvents = 100_000
	// sameEvent is the time within which a repetition counts as the same event.
	sameEvent = 10 * time.Minute
	// rememberedEvents bounds the objects whose last event this process remembers to detect repetitions.
	rememberedEvents = 10_000
	maxEventMessage  = 1024
)

func (s *Store) eventPrefix() string { return s.prefix + "events/" }

func decodeEvent(key string, value []byte, version int64) (*model.Event, error) {
	event := &model.Event{Sequence: version}
	if err := json.Unmarshal(value, event); err != nil {
		return nil, fmt.Errorf("%s in the store: %w", key, err)
	}
	return event, nil
}

// EventLog stores events. Its methods are safe for concurrent use.
type EventLog struct {
	store *Store
	mutex sync.Mutex
	last  map[string]lastEvent
}

type lastEvent struct {
	key   string
	event model.Event
}

// NewEventLog returns a log. A process has only one, because the log detects repetitions.
func NewEventLog(s *Store) *EventLog { return &EventLog{store: s, last: map[string]lastEvent{}} }

// Record stores an event. If it equals the last event of its object within sameEvent, it increments the count of that event
// instead.
func (l *EventLog) Record(ctx context.Context, event model.Event) error {
	now := l.store.now().UTC()
	event.Time, event.Count = now, 1
	if len(event.Message) > maxEventMessage {
		event.Message = strings.ToValidUTF8(event.Message[:maxEventMessage], "") // without the part of a character at the end
	}
	about := string(event.Object) + "/" + event.Name
	key := fmt.Sprintf("%s%020d-%s", l.store.eventPrefix(), now.UnixNano(), model.NewUID()[:8])
	l.mutex.Lock()
	if last, found := l.last[about]; found && last.event.Reason == event.Reason && last.event.Message == event.Message &&
		now.Sub(last.event.Time) < sameEvent {
		event.Count = last.event.Count + 1
		key = last.key
	}
	if len(l.last) >= rememberedEvents {
		clear(l.last)
	}
	l.last[about] = lastEvent{key, event}
	l.mutex.Unlock()
	value, err := json.Marshal(event)
	if err != nil {
		return err
	}
	if _, err := l.store.client.Put(ctx, key, string(value)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Events returns all stored events, oldest first, and their version.
func (s *Store) Events(ctx context.Context) ([]*model.Event, int64, error) {
	var all []*model.Event
	version, err := records[*model.Event]{s, s.eventPrefix(), decodeEvent}.sendAll(ctx,
		func(change RecordChange[*model.Event]) error {
			if change.Type == Put {
				all = append(all, change.Record)
			}
			return nil
		})
	slices.SortStableFunc(all, func(a, b *model.Event) int { return a.Time.Compare(b.Time) })
	return all, version, err
}

// WatchEvents reports every event from a version on, as Collection.Watch does for objects.
func (s *Store) WatchEvents(ctx context.Context, after int64, tell func(RecordChange[*model.Event]) error) error {
	return records[*model.Event]{s, s.eventPrefix(), decodeEvent}.watch(ctx, after, tell)
}

// PruneEvents deletes events that are older than EventAge or exceed MaxEvents.
func (s *Store) PruneEvents(ctx context.Context) error {
	old := fmt.Sprintf("%s%020d", s.eventPrefix(), s.now().Add(-EventAge).UnixNano())
	if _, err := s.client.Delete(ctx, s.eventPrefix(), clientv3.WithRange(old)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	end := clientv3.GetPrefixRangeEnd(s.eventPrefix())
	got, err := s.client.Get(ctx, s.eventPrefix(), clientv3.WithRange(end), clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	surplus := got.Count - MaxEvents
	if surplus <= 0 {
		return nil
	}
	got, err = s.client.Get(ctx, s.eventPrefix(), clientv3.WithRange(end), clientv3.WithKeysOnly(),
		clientv3.WithLimit(surplus))
	if err != nil || len(got.Kvs) == 0 {
		return err
	}
	last := string(got.Kvs[len(got.Kvs)-1].Key)
	if _, err := s.client.Delete(ctx, s.eventPrefix(), clientv3.WithRange(last+"\x00")); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
