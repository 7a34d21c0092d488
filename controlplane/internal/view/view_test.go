package view_test

import (
	"context"
	"log/slog"
	"testing"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

func open(t *testing.T) *store.Store {
	t.Helper()
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func create(t *testing.T, s *store.Store, name string) {
	t.Helper()
	if err := s.Fabrics.Create(t.Context(), &model.Fabric{Meta: model.Meta{Name: name}}, false); err != nil {
		t.Fatal(err)
	}
}

func TestAViewHoldsWhatWasThereAndFollowsWhatHappens(t *testing.T) {
	s := open(t)
	create(t, s, "red")
	v := view.New(s, slog.New(slog.DiscardHandler))
	changes := make(chan view.Change, 16)
	defer v.Subscribe(func(c view.Change) { changes <- c })()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = v.Run(ctx) }()
	<-v.Ready()
	if c := <-changes; c.Name != "red" || c.Before != nil || c.After == nil {
		t.Errorf("heard %+v first", c)
	}
	create(t, s, "blue")
	if c := <-changes; c.Name != "blue" || c.After == nil {
		t.Errorf("heard %+v of blue", c)
	}
	if _, err := s.Fabrics.Delete(t.Context(), "red", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if c := <-changes; c.Name != "red" || c.Before == nil || c.After != nil {
		t.Errorf("heard %+v of red's end", c)
	}
	v.Read(func(o *objects.Objects) {
		if len(o.Fabrics) != 1 || o.Fabrics["blue"] == nil || o.Version == 0 {
			t.Errorf("holds %v at version %d", o.Fabrics, o.Version)
		}
	})
}

func TestAVolumeIsFoundByItsTargetAndUIDWhileThatIsTrue(t *testing.T) {
	o := objects.New()
	o.Put(&model.Volume{Meta: model.Meta{Name: "orders", UID: "u"}})
	db := &model.Target{Meta: model.Meta{Name: "db"}, Spec: model.TargetSpec{Luns: []model.TargetLun{{Volume: "orders"}}}}
	o.Put(db)
	if o.TargetOf("orders") != db || o.VolumeByUID("u") == nil {
		t.Error("not found")
	}
	unmapped := &model.Target{Meta: model.Meta{Name: "db"}}
	o.Put(unmapped)
	if o.TargetOf("orders") != nil {
		t.Error("an unmapped volume still has its target")
	}
	o.Forget(model.KindVolume, "orders")
	if o.VolumeByUID("u") != nil {
		t.Error("a deleted volume is found by its uid")
	}
}
