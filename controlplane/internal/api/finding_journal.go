package api

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// findingEndsAfter is the time without a finding after which it has ended. So a fault that comes and goes makes few events.
	findingEndsAfter = time.Minute
	// findingEventBurst bounds the events about findings at a time. Further findings are recorded later, one every findingEventEvery.
	findingEventBurst = 100
	findingEventEvery = time.Second
	// findingStoreLimit bounds the time of storing one start or end.
	findingStoreLimit = 3 * time.Second
)

// RecordEvent records an event about an object, or about the control plane. It must not block for long.
type RecordEvent func(kind model.Kind, name string, warning bool, reason, message string)

// findingStarts stores starts of findings; *store.Store.
type findingStarts interface {
	BeginFinding(context.Context, model.FindingStart) (bool, error)
	EndFinding(context.Context, model.FindingStart) (bool, error)
}

// journal records an event when a finding begins and when it ends. The replica that leads runs it. The stored start of a finding says
// that the event was recorded, so that another leader does not repeat it.
type journal struct {
	store  findingStarts
	record RecordEvent
	log    *slog.Logger

	// absent has the time since when a recorded finding is not present.
	absent map[fault]time.Time
	events float64
	filled time.Time
}

func newJournal(starts findingStarts, record RecordEvent, log *slog.Logger) *journal {
	return &journal{store: starts, record: record, log: log, absent: map[fault]time.Time{}, events: findingEventBurst}
}

// allow reports whether an event may be recorded, and counts it.
func (j *journal) allow(now time.Time) bool {
	if !j.filled.IsZero() {
		j.events = min(findingEventBurst, j.events+now.Sub(j.filled).Seconds()/findingEventEvery.Seconds())
	}
	j.filled = now
	if j.events < 1 {
		return false
	}
	j.events--
	return true
}

// observe records the findings that have begun or ended. A fault that follows from another object's fault begins no finding of its own.
func (j *journal) observe(ctx context.Context, items []findings.Item, recorded []model.FindingStart, now time.Time) {
	since, known := map[fault]time.Time{}, map[fault]bool{} // since: the earliest of the items of a finding
	for _, item := range items {
		key := fault{item.Rule.ID, item.Ref}
		if first, present := since[key]; !present || item.Since.Before(first) {
			since[key] = item.Since
		}
	}
	for _, start := range recorded {
		known[faultOf(start)] = true
	}
	for _, found := range findings.Group(items) {
		for _, ref := range found.Objects {
			key := fault{found.Rule.ID, ref}
			if known[key] {
				continue
			}
			known[key] = true
			start := model.FindingStart{ID: found.Rule.ID, Object: ref.Kind, Name: ref.Name, Since: since[key].UTC(), Cause: found.Cause}
			if err := j.begin(ctx, start, found.Severity > findings.Advice, now); err != nil {
				j.log.Warn("the start of a finding could not be stored; it will be tried again", "finding", start.ID, "problem", err)
				return
			}
		}
	}
	for _, start := range recorded {
		if _, present := since[faultOf(start)]; present {
			delete(j.absent, faultOf(start))
		} else if err := j.end(ctx, start, now); err != nil {
			j.log.Warn("the end of a finding could not be stored; it will be tried again", "finding", start.ID, "problem", err)
			return
		}
	}
}

func faultOf(start model.FindingStart) fault {
	return fault{start.ID, findings.Ref{Kind: start.Object, Name: start.Name}}
}

// begin does nothing if too many events were recorded just now: the finding begins in a later round, if it is still present.
func (j *journal) begin(ctx context.Context, start model.FindingStart, warning bool, now time.Time) error {
	if !j.allow(now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, findingStoreLimit)
	defer cancel()
	begun, err := j.store.BeginFinding(ctx, start)
	if begun {
		j.record(start.Object, start.Name, warning, start.ID, start.Cause)
	}
	return err
}

func (j *journal) end(ctx context.Context, start model.FindingStart, now time.Time) error {
	key := faultOf(start)
	absent, noticed := j.absent[key]
	if !noticed {
		j.absent[key] = now
		return nil
	}
	if now.Sub(absent) < findingEndsAfter || !j.allow(now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, findingStoreLimit)
	defer cancel()
	ended, err := j.store.EndFinding(ctx, start)
	if err != nil {
		return err
	}
	delete(j.absent, key)
	if ended {
		lasted := max(absent.Sub(start.Since), 0).Round(time.Second)
		j.record(start.Object, start.Name, false, start.ID, fmt.Sprintf("ended after %s: %s", lasted, start.Cause))
	}
	return nil
}
