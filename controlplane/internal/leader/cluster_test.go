package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/leader"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// cluster has two gateways on one node. The test acts as the gateways.
type cluster struct {
	*store.Store
	t        *testing.T
	registry *prometheus.Registry
	events   *heard
}

// heard counts events by reason.
type heard struct {
	mutex sync.Mutex
	count map[string]int
	more  chan struct{}
}

func (h *heard) Record(_ context.Context, about model.Object, _ bool, reason, _ string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.count[string(about.Kind())+" "+reason]++
	close(h.more)
	h.more = make(chan struct{})
}

// await waits until an event was recorded the given number of times. The limit only ends a test that fails.
func (h *heard) await(t *testing.T, what string, times int) {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		h.mutex.Lock()
		count, more := h.count[what], h.more
		h.mutex.Unlock()
		if count >= times {
			return
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("%q was reported %d times, wanted %d", what, count, times)
		}
	}
}

func open(t *testing.T) *cluster {
	t.Helper()
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	h := &cluster{Store: s, t: t, registry: prometheus.NewRegistry(), events: &heard{count: map[string]int{}, more: make(chan struct{})}}
	must(h, s.Fabrics, &model.Fabric{Meta: model.Meta{Name: "red"}})
	must(h, s.GatewayPools, &model.GatewayPool{Meta: model.Meta{Name: "default"},
		Spec: model.GatewayPoolSpec{Fabrics: []string{"red"}}})
	must(h, s.StoragePools, &model.StoragePool{Meta: model.Meta{Name: "pool"},
		Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}})
	for n := 1; n <= 2; n++ {
		address := func(port int) string { return fmt.Sprintf("192.0.2.%d:%d", n, port) }
		must(h, s.Gateways, &model.Gateway{Meta: model.Meta{Name: fmt.Sprintf("gw-%d", n)}, Spec: model.GatewaySpec{
			GatewayPool: "default", Node: "node-1", ForwardingAddress: address(3261),
			Portals: []model.Portal{{Listen: address(3260), Fabric: "red"}}}})
	}
	return h
}

func must[T model.Object](h *cluster, all *store.Collection[T], object T) {
	h.t.Helper()
	if err := all.Create(h.t.Context(), object, false); err != nil {
		h.t.Fatal(err)
	}
}

// export creates a volume and a target that maps it.
func (h *cluster) export(name string) {
	must(h, h.Volumes, &model.Volume{Meta: model.Meta{Name: name},
		Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20}})
	must(h, h.Targets, &model.Target{Meta: model.Meta{Name: name}, Spec: model.TargetSpec{GatewayPool: "default",
		Luns: []model.TargetLun{{Volume: name}}}})
}

// replica runs a leader until the returned function is called.
func (h *cluster) replica(name string) (stop func()) {
	h.t.Helper()
	o, err := leader.New(leader.Config{Store: h.Store, Replica: name, Events: h.events,
		Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"replica": name}, h.registry)})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				h.t.Errorf("Run: %v", err)
			}
		})
	}
	h.t.Cleanup(stop)
	return stop
}

// gateway is a process that carries out its orders at once. It replaces dispatch and the gateway.
type gateway struct {
	*store.Connection
	stop func()
}

func (h *cluster) gateway(name, incarnation string) *gateway {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c, err := h.ConnectGateway(ctx, name, model.GatewayConnection{Ref: model.GatewayRef{Incarnation: incarnation}})
	if err != nil {
		h.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		_ = h.Volumes.Watch(ctx, 0, func(v store.Change[*model.Volume]) error { return obey(ctx, c, v) })
	})
	all.Go(func() {
		_ = h.WatchJobs(ctx, 0, func(j store.RecordChange[*model.Job]) error {
			if j.Type != store.Put || j.Record.Gateway != c.Ref.Number || j.Record.Ended() {
				return nil
			}
			return c.StoreJobResult(ctx, j.Record.ID, model.JobResult{DonePermille: model.JobDone})
		})
	})
	all.Go(func() {
		for ctx.Err() == nil && !errors.Is(c.KeepAlive(ctx), store.ErrReplaced) {
			select {
			case <-ctx.Done():
			case <-time.After(store.ConnectionTTL / 6):
			}
		}
	})
	var once sync.Once
	g := &gateway{c, func() {
		once.Do(func() {
			cancel()
			all.Wait()
			_ = c.Close(context.Background())
		})
	}}
	h.t.Cleanup(g.stop)
	return g
}

func obey(ctx context.Context, c *store.Connection, change store.Change[*model.Volume]) error {
	if change.Type != store.Put {
		return nil
	}
	ownership := change.Object.Status.Ownership
	say := func(state model.ObservedState) error {
		return c.ObserveVolumes(ctx, map[string]model.VolumeObservation{change.Object.Meta.UID: {
			Epoch: ownership.Epoch, Order: ownership.Order, State: state, AllocatedBytes: -1}})
	}
	switch {
	case ownership.State == model.Acquiring && ownership.Next == c.Ref:
		return say(model.VolumeLocked)
	case ownership.State == model.Opening && ownership.Owner == c.Ref:
		return say(model.VolumeServing)
	case ownership.State == model.Moving && ownership.Owner == c.Ref:
		return say(model.VolumeReleased)
	}
	return nil
}

// eventually waits until an object satisfies a condition. The limit only ends a test that fails.
func eventually[T model.Object](h *cluster, all *store.Collection[T], name string, reached func(T) bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 60*time.Second)
	defer cancel()
	enough := errors.New("enough")
	var last T
	err := all.Watch(ctx, 0, func(c store.Change[T]) error {
		if c.Type == store.Put && c.Object.Metadata().Name == name {
			if last = c.Object; reached(c.Object) {
				return enough
			}
		}
		return nil
	})
	if !errors.Is(err, enough) {
		h.t.Fatalf("%s does not come to be what it should: %+v", name, last)
	}
}

// vanishes waits until an object is removed.
func vanishes[T model.Object](h *cluster, all *store.Collection[T], name string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 60*time.Second)
	defer cancel()
	enough := errors.New("enough")
	there := false
	err := all.Watch(ctx, 0, func(c store.Change[T]) error {
		switch {
		case c.Type == store.Put && c.Object.Metadata().Name == name:
			there = true
		case c.Type == store.Deleted && c.Object.Metadata().Name == name, c.Type == store.Bookmark && !there:
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		h.t.Fatalf("%s stays", name)
	}
}

func ownedBy(ref model.GatewayRef) func(*model.Volume) bool {
	return func(v *model.Volume) bool {
		return v.Status.Ownership.State == model.Owned && v.Status.Ownership.Owner == ref
	}
}

func owned(v *model.Volume) bool { return v.Status.Ownership.State == model.Owned }

func health(want model.GatewayHealth) func(*model.Gateway) bool {
	return func(g *model.Gateway) bool { return g.Status.Health == want }
}

// first returns the gateway that owns a volume, and the other one.
func first(h *cluster, volume string, a, b *gateway) (owner, other *gateway) {
	h.t.Helper()
	eventually(h, h.Volumes, volume, owned)
	v, err := h.Volumes.Get(h.t.Context(), volume)
	if err != nil {
		h.t.Fatal(err)
	}
	if v.Status.Ownership.Owner == a.Ref {
		return a, b
	}
	return b, a
}
