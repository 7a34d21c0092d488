package main

import (
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

const (
	// waitingEvents bounds the events that are not stored yet. A failover of a thousand volumes causes several thousand.
	waitingEvents = 8192
	// eventTimeout bounds the storing of one event, and of the remaining ones when the process ends.
	eventTimeout = 3 * time.Second
	// eventRest is the ratio of the pause after an event to the time that storing it took. While many volumes change their
	// owners, hosts wait for etcd.
	eventRest = 4
)

// events logs events, and stores them asynchronously, because a failover must not wait for its events.
type events struct {
	log     *store.EventLog
	out     *slog.Logger
	waiting chan model.Event
}

func newEvents(log *store.EventLog, out *slog.Logger) *events {
	return &events{log: log, out: out, waiting: make(chan model.Event, waitingEvents)}
}

// Record implements leader.Events.
func (e *events) Record(_ context.Context, about model.Object, warning bool, reason, message string) {
	e.record(about.Kind(), about.Metadata().Name, warning, reason, message)
}

// record is api.RecordEvent.
func (e *events) record(kind model.Kind, name string, warning bool, reason, message string) {
	severity := model.EventNormal
	if warning {
		severity = model.EventWarning
	}
	event := model.Event{Severity: severity, Object: kind, Name: name, Reason: reason, Message: message}
	e.out.Info("event", "kind", event.Object, "name", event.Name, "reason", event.Reason, "message", event.Message)
	select {
	case e.waiting <- event:
	default: // the store is unavailable or far behind; the log has the event
		e.out.Warn("an event is not stored, too many wait", "reason", event.Reason, "name", event.Name)
	}
}

// run stores events in order until the context ends, and then the remaining ones.
func (e *events) run(ctx context.Context) error {
	for {
		select {
		case event := <-e.waiting:
			began := time.Now()
			e.store(context.WithoutCancel(ctx), event) // the queue is not read any more: only the waiting events remain
			select {
			case <-time.After(eventRest * time.Since(began)):
			case <-ctx.Done():
			}
		case <-ctx.Done():
			left, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
			defer cancel()
			for {
				select {
				case event := <-e.waiting:
					e.store(left, event)
				default:
					return ctx.Err()
				}
			}
		}
	}
}

func (e *events) store(ctx context.Context, event model.Event) {
	limited, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	if err := e.log.Record(limited, event); err != nil && ctx.Err() == nil {
		e.out.Warn("an event could not be stored", "reason", event.Reason, "problem", err)
	}
}
