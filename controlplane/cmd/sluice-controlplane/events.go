package main

import (
	"context"
	"log/slog"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

const (
	// waitingEvents bounds what was told of and not stored yet: a failover of a thousand volumes tells of several thousand.
	waitingEvents = 8192
	// eventTimeout bounds the storing of one, and of what is left when the process ends.
	eventTimeout = 3 * time.Second
	// eventRest is how many times as long as an event took to store the next one waits: what etcd is busy with while many volumes
	// change their owners is what hosts wait for.
	eventRest = 4
)

// events says what happened in the log, and keeps it in the store beside whoever tells of it: a failover has no time to wait
// for its history.
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
	severity := model.EventNormal
	if warning {
		severity = model.EventWarning
	}
	event := model.Event{Severity: severity, Object: about.Kind(), Name: about.Metadata().Name, Reason: reason, Message: message}
	e.out.Info("event", "kind", event.Object, "name", event.Name, "reason", event.Reason, "message", event.Message)
	select {
	case e.waiting <- event:
	default: // the store is away or far behind, and the log has it
		e.out.Warn("an event is not stored, too many wait", "reason", event.Reason, "name", event.Name)
	}
}

// run stores events in their order until the context ends, and then what is left.
func (e *events) run(ctx context.Context) error {
	for {
		select {
		case event := <-e.waiting:
			began := time.Now()
			e.store(context.WithoutCancel(ctx), event) // it waits no more: what is left is what waits
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
