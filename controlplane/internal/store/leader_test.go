package store_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

func TestOneLeadsAndTheNextOneFollows(t *testing.T) {
	f := open(t)
	began, stop, ended := make(chan *store.Term, 2), make(chan struct{}), make(chan error, 2)
	lead := func(name string) {
		ended <- f.Lead(t.Context(), name, func(ctx context.Context, term *store.Term) error {
			began <- term
			select {
			case <-stop:
			case <-ctx.Done():
			}
			return ctx.Err()
		})
	}
	go lead("a")
	first := <-began
	go lead("b")
	if leader, err := f.Leader(t.Context()); err != nil || leader != "a" {
		t.Errorf("leader %q, %v", leader, err)
	}
	stop <- struct{}{}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if second := <-began; second.Version <= first.Version {
		t.Errorf("the second term began at %d, the first at %d", second.Version, first.Version)
	}
	stop <- struct{}{}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// R1: the leader writes only during its term.
func TestWritesOfADeposedLeaderAreNotStored(t *testing.T) {
	f := withGateways(t, 1)
	must(f, f.Volumes, volume("orders"), volume("deleted"))
	must(f, f.Targets, target("db"))
	c := connect(f, "gw-1", "one")
	session := &model.Session{Gateway: "gw-1", GatewayNumber: 1, TSIH: 7}
	if err := c.StoreSessions(t.Context(), true, []*model.Session{session}, nil); err != nil {
		t.Fatal(err)
	}
	deleted, err := f.Volumes.Delete(t.Context(), "deleted", store.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var term *store.Term
	storetest.During(t, f.Store, func(lasting *store.Term) {
		if _, err := lasting.Own(t.Context(), "orders", assign(ref(1))); err != nil {
			t.Errorf("while it leads: %v", err)
		}
		term = lasting
	})
	before := f.raw()
	seen, err := f.Volumes.Get(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	for what, write := range deposedWrites(t.Context(), term, seen, deleted, session) {
		if err := write(); !errors.Is(err, store.ErrDeposed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := f.raw(); after != before {
		t.Errorf("stored before:\n%s\nand after:\n%s", before, after)
	}
}

// deposedWrites has all changes that a term can make, by what they change.
func deposedWrites(ctx context.Context, term *store.Term, seen, deleted *model.Volume, session *model.Session) map[string]func() error {
	serving := func(v *model.Volume) (model.Ownership, error) { return v.Status.Ownership.Serving(ref(1), 1) }
	clients := &model.RadosClients{PoolUID: "p", Gateway: ref(9)}
	return map[string]func() error{
		"Own":     func() error { _, err := term.Own(ctx, "orders", serving); return err },
		"OwnSeen": func() error { _, err := term.OwnSeen(ctx, seen, nil, serving); return err },
		"Modify": func() error {
			_, err := term.Modify(ctx, model.KindGateway, "gw-1", func(o model.Object) (bool, error) {
				o.(*model.Gateway).Status.Health = model.GatewayDead
				return true, nil
			})
			return err
		},
		"Remove": func() error { return term.Remove(ctx, deleted) },
		"AddPorts": func() error {
			_, err := term.AddPorts(ctx, "db", []model.TargetPort{{Gateway: 1, PortalGroupTag: 1}})
			return err
		},
		"PutJob":            func() error { _, err := term.PutJob(ctx, model.Job{ID: "x"}); return err },
		"DeleteJob":         func() error { return term.DeleteJob(ctx, &model.Job{ID: "x"}) },
		"ForgetGateway":     func() error { return term.ForgetGateway(ctx, 1) },
		"EvictSession":      func() error { return term.EvictSession(ctx, session) },
		"FenceRadosClients": func() error { _, err := term.FenceRadosClients(ctx, clients, nil); return err },
		"DropRadosClients":  func() error { return term.DropRadosClients(ctx, clients) },
	}
}

func TestADeposedLeaderTriesEveryWriteOfATerm(t *testing.T) {
	tried := deposedWrites(t.Context(), nil, nil, nil, nil)
	for method := range reflect.TypeFor[*store.Term]().Methods() {
		if tried[method.Name] == nil {
			t.Errorf("no test has a deposed leader call Term.%s", method.Name)
		}
	}
}
