package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// radosClients returns all records, by gateway.
func radosClients(f *fixture) map[model.GatewayRef]*model.RadosClients {
	f.t.Helper()
	known := map[model.GatewayRef]*model.RadosClients{}
	err := f.WatchRadosClients(f.t.Context(), 0, func(c store.RecordChange[*model.RadosClients]) error {
		if c.Type == store.Bookmark {
			return errEnough
		}
		if c.Type == store.Put {
			known[c.Record.Gateway] = c.Record
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		f.t.Fatal(err)
	}
	return known
}

func recordClient(f *fixture, c *store.Connection, client string) {
	f.t.Helper()
	if err := c.RecordRadosClient(f.t.Context(), "p", client); err != nil {
		f.t.Fatal(err)
	}
}

func TestAClientIsRecordedOnceForItsIncarnationAndNotAgainAfterItWasFenced(t *testing.T) {
	f := withGateways(t, 1)
	c := connect(f, "gw-1", "one")
	recordClient(f, c, "192.0.2.1:0/1")
	recordClient(f, c, "192.0.2.1:0/1")
	seen := radosClients(f)[c.Ref]
	if seen == nil || !slices.Equal(seen.Open(), []string{"192.0.2.1:0/1"}) {
		t.Fatalf("%+v", seen)
	}
	now, err := f.term().FenceRadosClients(t.Context(), seen, []string{"192.0.2.1:0/1"})
	if err != nil || len(now.Open()) != 0 {
		t.Fatalf("%+v, %v", now, err)
	}
	if err := c.RecordRadosClient(t.Context(), "p", "192.0.2.1:0/1"); !errors.Is(err, model.ErrClientFenced) {
		t.Errorf("a fenced client: %v", err)
	}
	recordClient(f, c, "192.0.2.1:0/2")
	if seen := radosClients(f)[c.Ref]; !slices.Equal(seen.Open(), []string{"192.0.2.1:0/2"}) || len(seen.All()) != 2 {
		t.Errorf("%+v", seen)
	}
}

func TestAReplacedStreamRecordsNoClient(t *testing.T) {
	f := withGateways(t, 1)
	first := connect(f, "gw-1", "one")
	connect(f, "gw-1", "two")
	if err := first.RecordRadosClient(t.Context(), "p", "192.0.2.1:0/1"); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("%v", err)
	}
	if known := radosClients(f); len(known) != 0 {
		t.Errorf("%v", known)
	}
}

func TestClientsThatAreRecordedAtOnceAreAllRecorded(t *testing.T) {
	f := withGateways(t, 1)
	c := connect(f, "gw-1", "one")
	const clients = 4
	var all errgroup.Group
	for n := range clients {
		all.Go(func() error { return c.RecordRadosClient(t.Context(), "p", fmt.Sprintf("192.0.2.1:0/%d", n+1)) })
	}
	if err := all.Wait(); err != nil {
		t.Errorf("the second caller got: %v", err)
	}
	if seen := radosClients(f)[c.Ref]; seen == nil || len(seen.Open()) != clients {
		t.Errorf("%+v", seen)
	}
}

func TestClientsOfOneIncarnationAreBounded(t *testing.T) {
	f := withGateways(t, 1)
	c := connect(f, "gw-1", "one")
	for n := range model.MaxRadosClients {
		recordClient(f, c, fmt.Sprintf("192.0.2.1:0/%d", n+1))
	}
	if err := c.RecordRadosClient(t.Context(), "p", "192.0.2.1:0/999"); !errors.Is(err, model.ErrTooManyClients) {
		t.Errorf("%v", err)
	}
}

func disconnect(f *fixture, c *store.Connection) {
	f.t.Helper()
	if err := c.Close(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func TestAFenceIsNotNotedOfARecordThatHasChanged(t *testing.T) {
	f := withGateways(t, 1)
	c := connect(f, "gw-1", "one")
	recordClient(f, c, "192.0.2.1:0/1")
	seen := radosClients(f)[c.Ref]
	recordClient(f, c, "192.0.2.1:0/2")
	if _, err := f.term().FenceRadosClients(t.Context(), seen, seen.All()); !errors.Is(err, store.ErrBusy) {
		t.Errorf("fenced: %v", err)
	}
	disconnect(f, c)
	if err := f.term().DropRadosClients(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	if known := radosClients(f); known[c.Ref] == nil {
		t.Error("it was dropped")
	}
}

func TestAChangeThatGoesByAnUnknownRecordIsNotStoredOnceThereIsOne(t *testing.T) {
	f := withGateways(t, 1)
	must(f, f.Volumes, volume("v"))
	c := connect(f, "gw-1", "one")
	seen, err := f.term().Own(t.Context(), "v", assign(c.Ref))
	if err != nil {
		t.Fatal(err)
	}
	unknown := &model.RadosClients{PoolUID: "p", Gateway: c.Ref}
	begin := func(v *model.Volume) (model.Ownership, error) { return v.Status.Ownership.BeginFence() }
	if seen, err = f.term().OwnSeen(t.Context(), seen, []*model.RadosClients{unknown}, begin); err != nil {
		t.Fatal("nothing is recorded:", err)
	}
	recordClient(f, c, "192.0.2.1:0/1")
	if _, err := f.term().OwnSeen(t.Context(), seen, []*model.RadosClients{unknown}, func(v *model.Volume) (model.Ownership, error) {
		return v.Status.Ownership.Fenced(c.Ref, nil, model.GatewayRef{})
	}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a client is recorded: %v", err)
	}
}

// R2: a stored fence covers the clients that were blocklisted, but no client that was recorded meanwhile.
func TestAVolumeIsNotTakenOverFromAGatewayThatHasRecordedAnotherClientMeanwhile(t *testing.T) {
	f := withGateways(t, 1)
	must(f, f.Volumes, volume("v"))
	c := connect(f, "gw-1", "one")
	recordClient(f, c, "192.0.2.1:0/1")
	_, err := f.term().Own(t.Context(), "v", assign(c.Ref))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := f.term().Own(t.Context(), "v", func(v *model.Volume) (model.Ownership, error) { return v.Status.Ownership.BeginFence() })
	if err != nil {
		t.Fatal(err)
	}
	fenced := func(v *model.Volume) (model.Ownership, error) {
		return v.Status.Ownership.Fenced(c.Ref, []string{"192.0.2.1:0/1"}, model.GatewayRef{})
	}
	clients := radosClients(f)[c.Ref]
	recordClient(f, c, "192.0.2.1:0/2")
	if _, err := f.term().OwnSeen(t.Context(), seen, []*model.RadosClients{clients}, fenced); !errors.Is(err, store.ErrBusy) {
		t.Errorf("with a client more: %v", err)
	}
	owned, err := f.term().OwnSeen(t.Context(), seen, []*model.RadosClients{radosClients(f)[c.Ref]}, fenced)
	if err != nil || owned.Status.Ownership.State != model.Orphaned {
		t.Errorf("%+v, %v", owned, err)
	}
}

func TestAClientRecordStaysWhileItsIncarnationOwnsAVolumeAndIsRenewedAfterReconnection(t *testing.T) {
	f := withGateways(t, 1)
	must(f, f.Volumes, volume("v"))
	c := connect(f, "gw-1", "one")
	recordClient(f, c, "192.0.2.1:0/1")
	before := radosClients(f)[c.Ref]
	given, err := f.term().Own(t.Context(), "v", assign(c.Ref))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.term().DropRadosClients(t.Context(), before); err != nil || radosClients(f)[c.Ref].Leaving {
		t.Fatalf("it has a stream, and takes itself for recorded: %v", err)
	}
	disconnect(f, c)
	if err := f.term().DropRadosClients(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if seen := radosClients(f)[c.Ref]; seen == nil || !seen.Leaving || len(seen.Open()) != 1 {
		t.Fatalf("it has a volume: %+v", seen)
	}
	move := func(v *model.Volume) (model.Ownership, error) { return v.Status.Ownership.Serving(c.Ref, 1) }
	if _, err := f.term().OwnSeen(t.Context(), given, []*model.RadosClients{before}, move); !errors.Is(err, store.ErrBusy) {
		t.Errorf("by a record as it was before: %v", err)
	}
	c = connect(f, "gw-1", "one")
	recordClient(f, c, "192.0.2.1:0/1")
	seen := radosClients(f)[c.Ref]
	if seen.Leaving || len(seen.All()) != 1 {
		t.Errorf("it is back: %+v", seen)
	}
	gone, err := f.Volumes.Delete(t.Context(), "v", store.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.term().Remove(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if err := f.term().DropRadosClients(t.Context(), seen); err != nil || radosClients(f)[c.Ref] == nil {
		t.Errorf("it has a stream: %v", err)
	}
	connect(f, "gw-1", "two") // it replaces the first
	if err := f.term().DropRadosClients(t.Context(), seen); err != nil || radosClients(f)[c.Ref] != nil {
		t.Errorf("it has nothing: %v", err)
	}
}
