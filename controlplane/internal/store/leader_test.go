package store_test

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func TestOneLeadsAndTheNextOneFollows(t *testing.T) {
	f := open(t)
	began, stop, ended := make(chan store.Term, 2), make(chan struct{}), make(chan error, 2)
	lead := func(name string) {
		ended <- f.Lead(t.Context(), name, func(ctx context.Context, term store.Term) error {
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

func TestWhatADeposedLeaderWritesIsNotStored(t *testing.T) {
	f := open(t)
	f.house()
	must(f, f.Volumes, volume("orders"))
	err := f.Lead(t.Context(), "a", func(ctx context.Context, _ store.Term) error {
		if _, err := f.Own(ctx, "orders", assign(ref(1))); err != nil {
			t.Errorf("while it leads: %v", err)
		}
		// Its key goes, as when its lease expires; it has not heard of it.
		if _, err := shared.Client.Delete(ctx, "/sluice/"+f.name+"/leader/", clientv3.WithPrefix()); err != nil {
			t.Error(err)
		}
		_, own := f.Own(ctx, "orders", func(v *model.Volume) (model.Ownership, error) {
			return v.Status.Ownership.Serving(ref(1), 1)
		})
		_, job := f.PutJob(ctx, store.Job{ID: "x"})
		for what, err := range map[string]error{"a change of ownership": own, "a job": job} {
			if !errors.Is(err, store.ErrDeposed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Volumes.Get(t.Context(), "orders"); got.Status.Ownership.State != model.Opening {
		t.Errorf("stored: %+v", got.Status.Ownership)
	}
}
