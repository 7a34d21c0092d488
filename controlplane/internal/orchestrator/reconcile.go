package orchestrator

import (
	"context"
	"errors"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// ErrStale says that the object is no longer what was decided on; the watch brings the newer one.
var ErrStale = errors.New("it has changed meanwhile")

// staleWait is when to look again at an object whose newer state should be heard any moment.
const staleWait = 200 * time.Millisecond

// reconcile decides on one object and stores what follows.
func (t *term) reconcile(ctx context.Context, key Key) (time.Duration, error) {
	decision := t.decide(key)
	if slices.ContainsFunc(decision.Actions, func(a Action) bool { return a.Own != nil && a.Own.Counted }) {
		select {
		case t.movers <- struct{}{}:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		defer func() { <-t.movers }()
		decision = t.decide(key) // by what was stored meanwhile
	}
	for _, action := range decision.Actions {
		err := t.carryOut(ctx, action)
		var missing *store.NotFoundError
		var conflict *store.ConflictError
		switch {
		case errors.Is(err, ErrStale), errors.Is(err, store.ErrBusy), errors.As(err, &missing), errors.As(err, &conflict):
			return staleWait, nil
		case err != nil:
			return 0, err
		}
	}
	return decision.Wait, nil
}

func (t *term) decide(key Key) Decision {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	decision := t.view.Decide(key, t.Clock())
	t.note(key, decision)
	return decision
}

// note keeps what metrics show. Under the mutex.
func (t *term) note(key Key, d Decision) {
	if d.Alarm == "" {
		delete(t.alarms, key)
	} else {
		t.alarms[key] = d.Alarm
	}
	if d.RateLimited && !t.limited[key] {
		t.metrics.refused.Inc()
		t.limited[key] = true
	} else if !d.RateLimited {
		delete(t.limited, key)
	}
}

// carryOut stores one action, and then tells about it.
func (t *term) carryOut(ctx context.Context, a Action) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	changed, err := t.store(ctx, a)
	if err != nil || !changed {
		return err
	}
	now := t.Clock()
	t.mutex.Lock()
	if a.Done != nil {
		a.Done(t.view, now)
	}
	if g, ok := a.Object.(*model.Gateway); ok && a.Event != nil && a.Event.Reason == string(model.GatewayDead) {
		t.failovers.gone(g.Ref(), now)
	}
	if a.Own != nil {
		t.metrics.changes.WithLabelValues(a.Own.Reason).Inc()
		if took, ends := t.failovers.changed(a, now); ends {
			t.metrics.failover.Observe(took.Seconds())
		}
	}
	t.mutex.Unlock()
	if a.Event != nil && a.Object != nil {
		t.Events.Record(ctx, a.Object, a.Event.Warning, a.Event.Reason, a.Event.Message)
	}
	return nil
}

// store makes an action's change, and says whether it changed anything.
func (t *term) store(ctx context.Context, a Action) (bool, error) {
	switch {
	case a.Own != nil:
		volume, err := t.own(ctx, a)
		if err != nil {
			return false, err
		}
		return true, t.take(volume)
	case a.Job != nil:
		job, err := t.Store.PutJob(ctx, *a.Job)
		if err == nil {
			t.mutex.Lock()
			t.view.PutJob(job)
			t.mutex.Unlock()
		}
		return err == nil, err
	case a.DropJob != nil:
		return true, t.Store.DeleteJob(ctx, a.DropJob)
	case a.Ports != nil:
		target, err := t.Store.AddPorts(ctx, a.Name, a.Ports)
		if err != nil {
			return false, err
		}
		return true, t.take(target)
	case a.Forget != 0:
		return true, t.Store.ForgetGateway(ctx, a.Forget)
	case a.Remove != nil:
		return true, t.remove(ctx, a.Remove)
	case a.Evict != nil:
		return t.evict(ctx, a.Evict)
	case a.FenceClients != nil:
		record, err := t.Store.FenceRadosClients(ctx, a.FenceClients, a.Clients)
		if err == nil {
			t.mutex.Lock()
			t.view.PutRadosClients(record)
			t.queue.add(t.view.touchedByRadosClients(record)...)
			t.mutex.Unlock()
		}
		return err == nil, err
	case a.DropClients != nil:
		return true, t.Store.DropRadosClients(ctx, a.DropClients)
	case a.Modify != nil:
		return t.modify(ctx, a)
	}
	return false, nil
}

// take puts what was stored into the view at once, so that the next step needs no watch.
func (t *term) take(object model.Object) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.unsynced) == 0 {
		t.put(object)
	}
	return nil
}

func (t *term) modify(ctx context.Context, a Action) (bool, error) {
	switch a.Kind {
	case model.KindVolume:
		return modifyIn(ctx, t, t.Store.Volumes, a)
	case model.KindTarget:
		return modifyIn(ctx, t, t.Store.Targets, a)
	case model.KindSnapshot:
		return modifyIn(ctx, t, t.Store.Snapshots, a)
	case model.KindStoragePool:
		return modifyIn(ctx, t, t.Store.StoragePools, a)
	case model.KindGateway:
		return modifyIn(ctx, t, t.Store.Gateways, a)
	}
	return false, nil
}

func modifyIn[T model.Object](ctx context.Context, t *term, all *store.Collection[T], a Action) (bool, error) {
	changed := false
	object, err := all.Modify(ctx, a.Name, func(object T) (bool, error) {
		if object.Metadata().UID != a.UID {
			return false, ErrStale
		}
		changed = a.Modify(object)
		return changed, nil
	})
	if err != nil {
		return false, err
	}
	return changed, t.take(object)
}

// evict says false where the session has ended meanwhile.
func (t *term) evict(ctx context.Context, e *Eviction) (bool, error) {
	err := t.Store.EvictSession(ctx, e.Session, false)
	var over *model.PreconditionError
	if errors.As(err, &over) {
		return false, nil
	}
	if err == nil {
		t.metrics.evicted.WithLabelValues(e.Reason).Inc()
	}
	return err == nil, err
}

func (t *term) remove(ctx context.Context, object model.Object) error {
	switch o := object.(type) {
	case *model.Volume:
		return t.Store.Volumes.Remove(ctx, o)
	case *model.Target:
		return t.Store.Targets.Remove(ctx, o)
	case *model.Snapshot:
		return t.Store.Snapshots.Remove(ctx, o)
	case *model.Gateway:
		return t.Store.Gateways.Remove(ctx, o)
	}
	return nil
}
