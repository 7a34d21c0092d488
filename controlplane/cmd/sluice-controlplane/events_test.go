package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

func TestEventsAreStoredInTheirOrderAlsoThoseThatWaitedWhenTheProcessEnds(t *testing.T) {
	kept := newStore(t)
	e := newEvents(store.NewEventLog(kept), slog.New(slog.DiscardHandler))
	const count = 50
	for i := range count { // none is stored yet, but Record never blocks
		e.Record(t.Context(), &model.Volume{Meta: model.Meta{Name: fmt.Sprint("vol-", i)}}, false, "Owned", "")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.run(over); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	all, _, err := kept.Events(t.Context())
	if err != nil || len(all) != count {
		t.Fatalf("%d events are stored: %v", len(all), err)
	}
	for i, event := range all {
		if want := fmt.Sprint("vol-", i); event.Name != want || event.Object != model.KindVolume {
			t.Errorf("event %d is of %s %s", i, event.Object, event.Name)
		}
	}
}

func TestTooManyEventsAreDroppedWithoutBlocking(t *testing.T) {
	e := newEvents(nil, slog.New(slog.DiscardHandler))
	for range waitingEvents + 10 {
		e.Record(t.Context(), &model.Volume{Meta: model.Meta{Name: "vol"}}, true, "Failed", "")
	}
	if len(e.waiting) != waitingEvents {
		t.Errorf("%d wait", len(e.waiting))
	}
}

func newStore(t *testing.T) *store.Store {
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
