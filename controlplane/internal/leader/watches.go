package leader

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// Watched records that are no objects and have no key of their own.
const (
	kindObserved model.Kind = "Observed"
	kindSession  model.Kind = "Session"
	kindClients  model.Kind = "RadosClients"
)

func (t *term) watchAll(ctx context.Context, group *errgroup.Group) {
	s := t.Store
	// All watches count as unsynced before the first one begins.
	for _, kind := range append([]model.Kind{kindObserved, decide.KindJob, kindSession, kindClients}, model.Kinds...) {
		t.unsynced[kind] = true
	}
	for _, kind := range model.Kinds {
		t.watchObjects(ctx, group, kind)
	}
	t.keepWatching(ctx, group, kindObserved, func() error {
		return s.WatchObserved(ctx, 0, func(c store.RecordChange[model.Observed]) error { t.observed(c); return nil })
	})
	t.keepWatching(ctx, group, kindSession, func() error {
		return s.WatchSessions(ctx, 0, func(c store.RecordChange[*model.Session]) error { t.session(c); return nil })
	})
	t.keepWatching(ctx, group, kindClients, func() error {
		return s.WatchRadosClients(ctx, 0, func(c store.RecordChange[*model.RadosClients]) error { t.clients(c); return nil })
	})
	t.keepWatching(ctx, group, decide.KindJob, func() error {
		return s.WatchJobs(ctx, 0, func(c store.RecordChange[*model.Job]) error { t.job(c); return nil })
	})
}

// keepWatching restarts a watch whenever it ends. Until it is in sync again, nothing is decided.
func (t *term) keepWatching(ctx context.Context, group *errgroup.Group, kind model.Kind, watch func() error) {
	group.Go(func() error {
		for {
			err := watch()
			t.mutex.Lock()
			t.sync(kind, false)
			t.mutex.Unlock()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.Log.Warn("a watch ended; nothing is decided until it is back", "kind", kind, "problem", err)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(againAfter):
			}
		}
	})
}

// sync records whether a watch has reported everything. After the last one has, every object is added to the queue. The caller
// holds the mutex.
func (t *term) sync(kind model.Kind, complete bool) {
	switch {
	case !complete && len(t.unsynced) == 0:
		t.unsynced[kind] = true
		t.synced = make(chan struct{})
	case !complete:
		t.unsynced[kind] = true
	case t.unsynced[kind]:
		delete(t.unsynced, kind)
		if len(t.unsynced) == 0 {
			close(t.synced)
			t.queue.add(t.view.Everything()...)
			t.plan()
		}
	}
}

func (t *term) watchObjects(ctx context.Context, group *errgroup.Group, kind model.Kind) {
	t.keepWatching(ctx, group, kind, func() error {
		return t.Store.WatchKind(ctx, kind, 0, func(c store.Change[model.Object]) error {
			t.mutex.Lock()
			defer t.mutex.Unlock()
			switch c.Type {
			case store.Reset:
				t.sync(kind, false)
				t.view.ResetKind(kind)
			case store.Put:
				t.put(c.Object)
			case store.Deleted:
				t.view.Delete(c.Object, c.Version)
				t.queue.add(t.view.TouchedBy(nil, c.Object)...)
				t.plan()
			case store.Bookmark:
				t.sync(kind, true)
			}
			return nil
		})
	})
}

// put adds an object to the view, reported by a watch or just stored. The caller holds the mutex.
func (t *term) put(object model.Object) {
	before := t.view.Get(object.Kind(), object.Metadata().Name)
	t.view.Put(object)
	if len(t.unsynced) == 0 {
		t.queue.add(t.view.TouchedBy(before, object)...)
		t.queue.add(t.view.NextTakeovers()...)
		t.plan()
	}
}

func (t *term) observed(c store.RecordChange[model.Observed]) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now := t.Clock()
	switch c.Type {
	case store.Reset:
		t.sync(kindObserved, false)
		t.view.ResetObserved(now)
		return
	case store.Put:
		if connection := c.Record.Connection; connection != nil {
			t.restarted(connection.Ref, now)
		}
		t.view.Observe(c.Record, now)
	case store.Deleted:
		t.view.Unobserve(c.Record, now)
	case store.Bookmark:
		t.sync(kindObserved, true)
		return
	}
	if len(t.unsynced) == 0 {
		touched := t.view.TouchedByRecord(c.Record)
		if c.Record.Volume != nil {
			t.queue.hurry(touched...)
		} else {
			t.queue.add(touched...)
		}
		if c.Record.Connection != nil {
			t.plan()
		}
	}
}

// restarted records the time since which an incarnation is gone: another one has connected.
func (t *term) restarted(ref model.GatewayRef, now time.Time) {
	if g := t.view.GatewayByNumber(ref.Number); g != nil && g.Status.Incarnation != ref.Incarnation {
		t.failovers.recordGone(g.Ref(), now)
	}
}

func (t *term) job(c store.RecordChange[*model.Job]) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch c.Type {
	case store.Reset:
		t.sync(decide.KindJob, false)
		clear(t.view.Jobs)
		return
	case store.Put:
		t.view.PutJob(c.Record)
	case store.Deleted:
		t.view.DeleteJob(c.Record.ID, c.Version)
	case store.Bookmark:
		t.sync(decide.KindJob, true)
		return
	}
	key, known := t.view.JobObject(c.Record.ID)
	if !known {
		key = decide.Key{Kind: decide.KindJob, Name: c.Record.ID}
	}
	t.queue.add(key)
}

func (t *term) clients(c store.RecordChange[*model.RadosClients]) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch c.Type {
	case store.Reset:
		t.sync(kindClients, false)
		t.view.ResetRadosClients()
		return
	case store.Put:
		t.view.PutRadosClients(c.Record)
	case store.Deleted:
		t.view.DeleteRadosClients(c.Record, c.Version)
	case store.Bookmark:
		t.sync(kindClients, true)
		return
	}
	if len(t.unsynced) == 0 {
		t.queue.add(t.view.TouchedByRadosClients(c.Record)...)
	}
}

func (t *term) session(c store.RecordChange[*model.Session]) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	changed := true
	switch c.Type {
	case store.Reset:
		t.sync(kindSession, false)
		t.view.ResetSessions()
		return
	case store.Put:
		changed = t.view.PutSession(c.Record, t.Clock())
	case store.Deleted:
		t.view.EndSession(c.Record)
	case store.Bookmark:
		t.sync(kindSession, true)
		return
	}
	if changed && len(t.unsynced) == 0 {
		t.queue.add(t.view.TouchedBySession(c.Record)...)
	}
}
