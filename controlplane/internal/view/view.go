package view

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// retryAfter is how long a watch that failed waits before it begins anew.
const retryAfter = 200 * time.Millisecond

// Change says which object is another one now.
type Change struct {
	Kind model.Kind
	// Name is empty where any of the kind may have changed.
	Name string
	// Before and After are nil where there was or is none.
	Before, After model.Object
}

// View is the copy.
type View struct {
	store *store.Store
	log   *slog.Logger
	ready chan struct{}

	mutex    sync.RWMutex
	objects  *Objects
	versions map[model.Kind]int64
	missing  map[model.Kind]bool
	told     map[int]func(Change)
	next     int
}

// New makes a view that holds nothing until Run.
func New(s *store.Store, log *slog.Logger) *View {
	v := &View{store: s, log: log, ready: make(chan struct{}), objects: NewObjects(),
		versions: map[model.Kind]int64{}, missing: map[model.Kind]bool{}, told: map[int]func(Change){}}
	for _, kind := range []model.Kind{model.KindVolume, model.KindTarget, model.KindHost, model.KindSnapshot,
		model.KindStoragePool, model.KindGateway, model.KindGatewayPool, model.KindFabric} {
		v.missing[kind] = true
	}
	return v
}

// Run follows the store until the context ends. A watch that fails begins anew; meanwhile what is held gets old.
func (v *View) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return follow(ctx, v, v.store.Volumes, v.objects.Volumes, model.KindVolume) })
	group.Go(func() error { return follow(ctx, v, v.store.Targets, v.objects.Targets, model.KindTarget) })
	group.Go(func() error { return follow(ctx, v, v.store.Hosts, v.objects.Hosts, model.KindHost) })
	group.Go(func() error { return follow(ctx, v, v.store.Snapshots, v.objects.Snapshots, model.KindSnapshot) })
	group.Go(func() error {
		return follow(ctx, v, v.store.StoragePools, v.objects.StoragePools, model.KindStoragePool)
	})
	group.Go(func() error { return follow(ctx, v, v.store.Gateways, v.objects.Gateways, model.KindGateway) })
	group.Go(func() error {
		return follow(ctx, v, v.store.GatewayPools, v.objects.GatewayPools, model.KindGatewayPool)
	})
	group.Go(func() error { return follow(ctx, v, v.store.Fabrics, v.objects.Fabrics, model.KindFabric) })
	return group.Wait()
}

// Ready is closed once every kind has been told in full.
func (v *View) Ready() <-chan struct{} { return v.ready }

// askEvery is how often the watches are asked for their progress while somebody waits for it.
const askEvery = 50 * time.Millisecond

// WaitFor returns once all that was stored up to a version has been told: who decides for somebody who may have been told
// more already must not decide on less.
func (v *View) WaitFor(ctx context.Context, version int64) error {
	for {
		v.mutex.RLock()
		reached := v.objects.Version
		v.mutex.RUnlock()
		if reached >= version {
			return nil
		}
		if err := v.store.AskProgress(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the watches have told %d of %d: %w", reached, version, ctx.Err())
		case <-time.After(askEvery):
		}
	}
}

// Read gives what is held; nobody keeps or changes the maps.
func (v *View) Read(use func(*Objects)) {
	v.mutex.RLock()
	defer v.mutex.RUnlock()
	use(v.objects)
}

// Subscribe tells of every change, after it was taken up, in order for each kind; tell must not block nor call the view.
// The function returned ends it.
func (v *View) Subscribe(tell func(Change)) func() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	id := v.next
	v.next++
	v.told[id] = tell
	return func() {
		v.mutex.Lock()
		defer v.mutex.Unlock()
		delete(v.told, id)
	}
}

// follow keeps one kind up to date, which is held in a map of Objects.
func follow[T model.Object](ctx context.Context, v *View, objects *store.Collection[T], held map[string]T, kind model.Kind,
) error {
	after := int64(0)
	// Objects told since a Reset: what is held beside them is gone.
	var seen map[string]bool
	for {
		err := objects.Watch(ctx, after, func(change store.Change[T]) error {
			v.mutex.Lock()
			defer v.mutex.Unlock()
			switch change.Type {
			case store.Reset:
				seen = map[string]bool{}
			case store.Put:
				if seen != nil {
					seen[change.Object.Metadata().Name] = true
				}
				put(v, held, change.Object)
			case store.Deleted:
				forget(v, held, kind, change.Object.Metadata().Name)
			case store.Bookmark:
				if seen != nil {
					for name := range maps.Clone(held) {
						if !seen[name] {
							forget(v, held, kind, name)
						}
					}
					seen = nil
				}
				after = change.Version
				v.bookmark(kind, change.Version)
			}
			return nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		v.log.Warn("a watch of the store failed; it begins anew", "kind", kind, "problem", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryAfter):
		}
	}
}

func put[T model.Object](v *View, held map[string]T, object T) {
	name := object.Metadata().Name
	before := find(held, name)
	v.objects.Put(object)
	v.tell(Change{Kind: object.Kind(), Name: name, Before: before, After: object})
}

func forget[T model.Object](v *View, held map[string]T, kind model.Kind, name string) {
	before := find(held, name)
	v.objects.Forget(kind, name)
	v.tell(Change{Kind: kind, Name: name, Before: before})
}

func (v *View) tell(change Change) {
	for _, tell := range v.told {
		tell(change)
	}
}

func (v *View) bookmark(kind model.Kind, version int64) {
	v.versions[kind] = version
	if v.missing[kind] {
		delete(v.missing, kind)
		if len(v.missing) == 0 {
			close(v.ready)
		}
	}
	if len(v.missing) > 0 {
		return
	}
	lowest := version
	for _, version := range v.versions {
		lowest = min(lowest, version)
	}
	v.objects.Version = max(v.objects.Version, lowest)
}
