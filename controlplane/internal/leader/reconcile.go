package leader

import (
	"context"
	"errors"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// staleWait is the pause before the next decision on an object whose newer state the watch is about to report.
const staleWait = 200 * time.Millisecond

// reconcile decides on one object and stores the resulting actions.
func (t *term) reconcile(ctx context.Context, key decide.Key) (time.Duration, error) {
	decision := t.decide(key)
	if slices.ContainsFunc(decision.Actions, counted) {
		select {
		case t.movers <- struct{}{}:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		defer func() { <-t.movers }()
		decision = t.decide(key) // with what was stored meanwhile
	}
	for _, action := range decision.Actions {
		err := t.carryOut(ctx, action)
		var missing *store.NotFoundError
		var conflict *store.ConflictError
		switch {
		case errors.Is(err, decide.ErrStale), errors.Is(err, store.ErrBusy), errors.As(err, &missing), errors.As(err, &conflict):
			return staleWait, nil
		case err != nil:
			return 0, err
		}
	}
	return decision.Wait, nil
}

// counted reports whether an action is a move whose decision depends on the number of other moves in progress.
func counted(a decide.Action) bool {
	change, ok := a.(*decide.ChangeOwner)
	return ok && change.Counted
}

func (t *term) decide(key decide.Key) decide.Decision {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	decision := t.view.Decide(key, t.Clock())
	t.note(key, decision)
	return decision
}

// note records the state for metrics. The caller holds the mutex.
func (t *term) note(key decide.Key, decision decide.Decision) {
	if decision.RateLimited && !t.limited[key] {
		t.metrics.refused.Inc()
		t.limited[key] = true
	} else if !decision.RateLimited {
		delete(t.limited, key)
	}
}

// carryOut stores one action, and then records its event.
func (t *term) carryOut(ctx context.Context, a decide.Action) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stored, err := decide.Execute(ctx, t.writes, a)
	if err != nil {
		return err
	}
	t.applyStored(stored)
	if !stored.Changed {
		return nil
	}
	of := a.About()
	t.noteStored(a)
	if of.Event != nil && of.Object != nil {
		t.Events.Record(ctx, of.Object, of.Event.Warning, of.Event.Reason, of.Event.Message)
	}
	return nil
}

// applyStored puts a stored result into the view at once, so that the next step does not wait for the watch.
func (t *term) applyStored(stored decide.Stored) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if stored.Object != nil && len(t.unsynced) == 0 {
		t.put(stored.Object)
	}
	if stored.Job != nil {
		t.view.PutJob(stored.Job)
	}
	if stored.Clients != nil {
		t.view.PutRadosClients(stored.Clients)
		t.queue.add(t.view.TouchedByRadosClients(stored.Clients)...)
	}
}

// noteStored updates the view and the metrics for a stored action.
func (t *term) noteStored(a decide.Action) {
	now, of := t.Clock(), a.About()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if of.Done != nil {
		of.Done(t.view, now)
	}
	if g, ok := of.Object.(*model.Gateway); ok && of.Event != nil && of.Event.Reason == string(model.GatewayDead) {
		t.failovers.recordGone(g.Ref(), now)
	}
	if evicted, ok := a.(*decide.Evict); ok {
		t.metrics.evicted.WithLabelValues(evicted.Reason).Inc()
	}
	if change, ok := a.(*decide.ChangeOwner); ok {
		t.metrics.changes.WithLabelValues(change.Reason).Inc()
		if took, ends := t.failovers.changed(change, now); ends {
			t.metrics.failover.Observe(took.Seconds())
		}
	}
}
