package view

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/store"
)

// retryAfter is the pause before a failed watch is started again.
const retryAfter = 200 * time.Millisecond

// Change names an object that has changed.
type Change struct {
	Kind model.Kind
	// Name is empty if any object of the kind may have changed.
	Name string
	// Before and After are nil if there was or is no such object.
	Before, After model.Object
}

// Cache is the copy of the store's objects. It is safe for concurrent use.
type Cache struct {
	store *store.Store
	log   *slog.Logger
	ready chan struct{}

	mutex       sync.RWMutex
	objects     *objects.Objects
	versions    map[model.Kind]int64
	missing     map[model.Kind]bool
	subscribers map[int]func(Change)
	next        int
}

// New returns an empty cache. Run fills it.
func New(s *store.Store, log *slog.Logger) *Cache {
	c := &Cache{store: s, log: log, ready: make(chan struct{}), objects: objects.New(),
		versions: map[model.Kind]int64{}, missing: map[model.Kind]bool{}, subscribers: map[int]func(Change){}}
	for _, kind := range model.Kinds {
		c.missing[kind] = true
	}
	return c
}

// Run follows the store until the context ends. A failed watch is started again after retryAfter; until then the copy gets older.
func (c *Cache) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, kind := range model.Kinds {
		group.Go(func() error { return c.follow(ctx, kind) })
	}
	return group.Wait()
}

// Ready is closed once the cache has all objects of every kind.
func (c *Cache) Ready() <-chan struct{} { return c.ready }

// progressInterval is the interval at which WaitFor requests the progress of the watches.
const progressInterval = 50 * time.Millisecond

// WaitFor returns once the cache contains everything that was stored up to a version. A caller that decides for a client that may
// already have seen that version needs this: else it would decide on older data than the client has. It fails if the context
// ends.
func (c *Cache) WaitFor(ctx context.Context, version int64) error {
	for {
		c.mutex.RLock()
		reached := c.objects.Version
		c.mutex.RUnlock()
		if reached >= version {
			return nil
		}
		if err := c.store.AskProgress(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the watches have reached revision %d of %d: %w", reached, version, ctx.Err())
		case <-time.After(progressInterval):
		}
	}
}

// Read calls use with the objects. use must not change the maps, nor use them after it returns.
func (c *Cache) Read(use func(*objects.Objects)) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	use(c.objects)
}

// Subscribe calls tell for every change after the cache contains it, in order for each kind. tell must not block nor call the
// cache. The returned function ends the subscription.
func (c *Cache) Subscribe(tell func(Change)) func() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	id := c.next
	c.next++
	c.subscribers[id] = tell
	return func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		delete(c.subscribers, id)
	}
}

// follow watches one kind and applies its changes to the copy.
func (c *Cache) follow(ctx context.Context, kind model.Kind) error {
	after := int64(0)
	// Objects received since a Reset. Objects of the copy that are not among them no longer exist.
	var seen map[string]bool
	for {
		err := c.store.WatchKind(ctx, kind, after, func(change store.Change[model.Object]) error {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			switch change.Type {
			case store.Reset:
				seen = map[string]bool{}
			case store.Put:
				if seen != nil {
					seen[change.Object.Metadata().Name] = true
				}
				c.put(change.Object)
			case store.Deleted:
				c.forget(kind, change.Object.Metadata().Name)
			case store.Bookmark:
				if seen != nil {
					for _, name := range c.objects.Names(kind) {
						if !seen[name] {
							c.forget(kind, name)
						}
					}
					seen = nil
				}
				after = change.Version
				c.bookmark(kind, change.Version)
			}
			return nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.log.Warn("a watch of the store failed; it starts again", "kind", kind, "problem", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryAfter):
		}
	}
}

func (c *Cache) put(object model.Object) {
	name := object.Metadata().Name
	before := c.objects.Get(object.Kind(), name)
	c.objects.Put(object)
	c.notify(Change{Kind: object.Kind(), Name: name, Before: before, After: object})
}

func (c *Cache) forget(kind model.Kind, name string) {
	before := c.objects.Get(kind, name)
	c.objects.Forget(kind, name)
	c.notify(Change{Kind: kind, Name: name, Before: before})
}

func (c *Cache) notify(change Change) {
	for _, tell := range c.subscribers {
		tell(change)
	}
}

func (c *Cache) bookmark(kind model.Kind, version int64) {
	c.versions[kind] = version
	if c.missing[kind] {
		delete(c.missing, kind)
		if len(c.missing) == 0 {
			close(c.ready)
		}
	}
	if len(c.missing) > 0 {
		return
	}
	lowest := version
	for _, version := range c.versions {
		lowest = min(lowest, version)
	}
	c.objects.Version = max(c.objects.Version, lowest)
}
