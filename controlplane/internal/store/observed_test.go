package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// withGateways has this number of gateways: gw-1 with number 1 and so on.
func withGateways(t *testing.T, count int) *fixture {
	f := open(t)
	f.prerequisites()
	for number := range count {
		must(f, f.Gateways, gateway(number+1))
	}
	return f
}

func connect(f *fixture, gateway, incarnation string) *store.Connection {
	f.t.Helper()
	connection, err := f.ConnectGateway(f.t.Context(), gateway,
		model.GatewayConnection{Ref: model.GatewayRef{Incarnation: incarnation}, Replica: "here"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = connection.Close(context.Background()) })
	return connection
}

// observed returns the present records in words.
func observed(f *fixture) map[string]bool {
	f.t.Helper()
	known := map[string]bool{}
	err := f.WatchObserved(f.t.Context(), 0, func(c store.RecordChange[model.Observed]) error {
		switch o := c.Record; {
		case c.Type == store.Bookmark:
			return errEnough
		case o.Connection != nil:
			known[fmt.Sprintf("connection %s", o.Connection.Ref)] = true
		case o.Volume != nil:
			known[fmt.Sprintf("volume %s %s %s", o.Volume.UID, o.Volume.Gateway, o.Volume.State)] = true
		case o.Peer != nil:
			known[fmt.Sprintf("peer %s %s %s", o.Peer.Reporter, o.Peer.Peer, o.Peer.Reach)] = true
		case o.Pool != nil:
			known[fmt.Sprintf("pool %s", o.Pool.UID)] = true
		case o.Load != nil:
			known[fmt.Sprintf("load %s %d", o.Load.Gateway, o.Load.Sessions)] = true
		case o.Applied != nil:
			known[fmt.Sprintf("applied %s %s %s%s", o.Applied.Gateway, o.Applied.UID, o.Applied.Export, o.Applied.Refused)] = true
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		f.t.Fatal(err)
	}
	return known
}

func expectObserved(f *fixture, want ...string) {
	f.t.Helper()
	known := observed(f)
	for _, w := range want {
		if !known[w] {
			f.t.Errorf("%q is not among %v", w, known)
		}
	}
	if len(known) != len(want) {
		f.t.Errorf("observed is %v, want %v", known, want)
	}
}

func TestAClosedConnectionIsGoneAtOnceAndAnOlderOneTakesNoNewerAway(t *testing.T) {
	f := withGateways(t, 1)
	first := connect(f, "gw-1", "one")
	expectObserved(f, "connection 1/one")
	second := connect(f, "gw-1", "two")
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectObserved(f, "connection 1/two")
	if err := second.KeepAlive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectObserved(f)
}

// A process must not end because another stream of it is the present one. It may be an earlier stream, whose connection etcd stored late.
func TestAReplacedStreamEndsWithAnErrorAndStoresNothingMore(t *testing.T) {
	for incarnation, want := range map[string]error{"one": store.ErrExpired, "two": store.ErrReplaced} {
		f := withGateways(t, 1)
		first := connect(f, "gw-1", "one")
		connect(f, "gw-1", incarnation)
		if err := first.KeepAlive(t.Context()); !errors.Is(err, want) {
			t.Errorf("KeepAlive after a stream of process %s: %v", incarnation, err)
		}
		err := first.ObserveVolumes(t.Context(), map[string]model.VolumeObservation{"u": {State: model.VolumeServing}})
		if !errors.Is(err, want) {
			t.Errorf("ObserveVolumes after a stream of process %s: %v", incarnation, err)
		}
		expectObserved(f, "connection 1/"+incarnation)
	}
}

func TestAnIncarnationThatWasReplacedNeverConnectsAgain(t *testing.T) {
	f := withGateways(t, 1)
	connect(f, "gw-1", "one")
	connect(f, "gw-1", "two")
	_, err := f.ConnectGateway(t.Context(), "gw-1", model.GatewayConnection{Ref: model.GatewayRef{Incarnation: "one"}})
	if !errors.Is(err, store.ErrReplaced) {
		t.Errorf("the old incarnation: %v", err)
	}
	expectObserved(f, "connection 1/two")
	var missing *store.NotFoundError
	if _, err := f.ConnectGateway(t.Context(), "absent", model.GatewayConnection{
		Ref: model.GatewayRef{Incarnation: "x"}}); !errors.As(err, &missing) {
		t.Errorf("a gateway that is not known: %v", err)
	}
}

func TestAConnectionThatIsNotKeptAliveExpires(t *testing.T) {
	f := withGateways(t, 1)
	silent := connect(f, "gw-1", "one")
	gone := false
	err := f.WatchObserved(t.Context(), 0, func(c store.RecordChange[model.Observed]) error {
		if c.Type == store.Deleted && c.Record.Connection != nil && c.Record.Connection.Ref == silent.Ref {
			gone = true
			return errEnough
		}
		return nil
	})
	if !gone {
		t.Fatal(err)
	}
	if err := silent.KeepAlive(t.Context()); !errors.Is(err, store.ErrExpired) {
		t.Errorf("KeepAlive after its end: %v", err)
	}
}

func TestPeersThatAreNotReachedAreNewsEachTimeAndOthersOnce(t *testing.T) {
	f := withGateways(t, 2)
	a := connect(f, "gw-1", "one")
	b := model.GatewayRef{Number: 2, Incarnation: "x"}
	tell := func(reach model.Reach) {
		t.Helper()
		if err := a.ObservePeer(t.Context(), model.PeerReport{Peer: b, Reach: reach, Silent: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	var versions []int64
	latest := func() int64 {
		var version int64
		_ = f.WatchObserved(t.Context(), 0, func(c store.RecordChange[model.Observed]) error {
			if c.Type == store.Bookmark {
				return errEnough
			}
			if c.Record.Peer != nil {
				version = c.Record.Version
			}
			return nil
		})
		return version
	}
	for _, reach := range []model.Reach{model.PeerConnected, model.PeerConnected, model.PeerSilent, model.PeerSilent} {
		tell(reach)
		versions = append(versions, latest())
	}
	if versions[0] != versions[1] || versions[1] >= versions[2] || versions[2] >= versions[3] {
		t.Errorf("versions %v: the second is the first, the others are new", versions)
	}
}

func TestReportsAreDeletedWithTheirVolumeAndTheirGateway(t *testing.T) {
	f := withGateways(t, 2)
	v := volume("v")
	must(f, f.Volumes, v)
	a, b := connect(f, "gw-1", "one"), connect(f, "gw-2", "two")
	ctx := t.Context()
	uid := v.Meta.UID
	for _, err := range []error{
		a.ObserveVolumes(ctx, map[string]model.VolumeObservation{uid: {State: model.VolumeServing}, "w": {State: model.VolumeServing}}),
		b.ObserveVolumes(ctx, map[string]model.VolumeObservation{uid: {State: model.VolumeReleased}}),
		a.ObservePeer(ctx, model.PeerReport{Peer: b.Ref, Reach: model.PeerRefused}), b.ObservePeer(ctx, model.PeerReport{Peer: a.Ref, Reach: model.PeerConnected}),
		b.ObservePool(ctx, model.PoolReport{UID: "p"}), b.ObserveLoads(ctx, model.LoadReport{Sessions: 1}),
		b.ObserveLoads(ctx, model.LoadReport{Sessions: 2}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	expectObserved(f, "connection 1/one", "connection 2/two", "volume "+uid+" 1/one Serving", "volume w 1/one Serving",
		"volume "+uid+" 2/two Released", "peer 1/one 2/two Refused", "peer 2/two 1/one Connected", "pool p", "load 2/two 1")
	deleted, err := f.Volumes.Delete(ctx, "v", store.DeleteOptions{})
	if err == nil {
		err = f.term().Remove(ctx, deleted)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.term().ForgetGateway(ctx, 2); err != nil {
		t.Fatal(err)
	}
	expectObserved(f, "connection 1/one", "connection 2/two", "volume w 1/one Serving")
}

func TestAJobIsGivenOutOnceAndItsGatewaysResultCounts(t *testing.T) {
	f := withGateways(t, 2)
	a, b := connect(f, "gw-1", "one"), connect(f, "gw-2", "two")
	ctx := t.Context()
	job, err := f.term().PutJob(ctx, model.Job{ID: "x", Gateway: 1, Action: model.JobDeleteImage})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.term().PutJob(ctx, model.Job{ID: "x", Gateway: 2}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("the same job twice: %v", err)
	}
	now := func() *model.Job {
		var found *model.Job
		_ = f.WatchJobs(ctx, 0, func(c store.RecordChange[*model.Job]) error {
			if c.Type == store.Bookmark {
				return errEnough
			}
			if c.Type == store.Put {
				found = c.Record
			}
			return nil
		})
		return found
	}
	for _, step := range []struct {
		by     *store.Connection
		result model.JobResult
		want   uint32
	}{
		{b, model.JobResult{DonePermille: model.JobDone}, 0}, // not its job
		{a, model.JobResult{DonePermille: 500}, 500},
		{a, model.JobResult{DonePermille: 2000}, model.JobDone},
		{a, model.JobResult{DonePermille: 1}, model.JobDone}, // the job has ended
	} {
		if err := step.by.StoreJobResult(ctx, "x", step.result); err != nil {
			t.Fatal(err)
		}
		if got := now().Result.DonePermille; got != step.want {
			t.Errorf("after %+v it is %d done, want %d", step.result, got, step.want)
		}
	}
	if err := f.term().DeleteJob(ctx, job); err != nil || now() == nil {
		t.Errorf("an older version took the job away: %v", err)
	}
	if err := f.term().DeleteJob(ctx, now()); err != nil || now() != nil {
		t.Errorf("it is there still: %v", err)
	}
	if err := a.StoreJobResult(ctx, "x", model.JobResult{}); err != nil {
		t.Errorf("a result that is not waited for: %v", err)
	}
}

func TestWhatIsMadeForAnObjectIsMadeBeforeItsDeletionAndDeletedBeforeItGoes(t *testing.T) {
	f := withGateways(t, 1)
	v := volume("orders")
	must(f, f.Volumes, v)
	ctx := t.Context()
	create := model.Job{ID: v.Meta.UID + ".create", Action: model.JobCreateImage, Kind: model.KindVolume, Name: "orders"}
	job, err := f.term().PutJob(ctx, create)
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := f.Volumes.Delete(ctx, "orders", store.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var conflict *store.ConflictError
	if err := f.term().Remove(ctx, deleted); !errors.As(err, &conflict) {
		t.Errorf("removed with a job: %v", err)
	}
	if err := f.term().DeleteJob(ctx, job); err != nil {
		t.Fatal(err)
	}
	if _, err := f.term().PutJob(ctx, create); !errors.Is(err, store.ErrBusy) {
		t.Errorf("made again after its deletion: %v", err)
	}
	if err := f.term().Remove(ctx, deleted); err != nil {
		t.Error(err)
	}
}

func TestEachGatewayHasOneBoundedRecordOfHostFaultsThatEndsWithIt(t *testing.T) {
	f := withGateways(t, 2)
	ctx := t.Context()
	first, second := connect(f, "gw-1", "one"), connect(f, "gw-2", "two")
	for i := range 3 {
		report := model.HostFaultReport{Faults: []model.HostFault{{Kind: model.HostLoginRefused, Initiator: fmt.Sprint(i)}}}
		for _, c := range []*store.Connection{first, second} {
			if err := c.ObserveHostFaults(ctx, report); err != nil {
				t.Fatal(err)
			}
		}
	}
	stored := func() map[string]string {
		known := map[string]string{}
		err := f.WatchHostFaults(ctx, 0, func(c store.RecordChange[*model.HostFaultReport]) error {
			if c.Type == store.Bookmark {
				return errEnough
			}
			if c.Type == store.Put {
				known[c.Record.Gateway.String()] = c.Record.Faults[0].Initiator
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		return known
	}
	if known := stored(); len(known) != 2 || known["1/one"] != "2" || known["2/two"] != "2" {
		t.Errorf("%v", known)
	}
	if one, err := f.HostFaults(ctx, 1); err != nil || len(one.Faults) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	if none, err := f.HostFaults(ctx, 9); err != nil || len(none.Faults) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	if err := f.term().ForgetGateway(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if known := stored(); len(known) != 1 {
		t.Errorf("a removed gateway left %v", known)
	}
	connect(f, "gw-1", "three")
	if err := first.ObserveHostFaults(ctx, model.HostFaultReport{}); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("a replaced gateway reported: %v", err)
	}
}

func TestAFindingBeginsAndEndsOnce(t *testing.T) {
	f := open(t)
	start := model.FindingStart{ID: "CertificateEndsSoon", Object: "Certificate", Name: "gateway a/b c", Since: time.Now().UTC(), Cause: "x"}
	for i, want := range []bool{true, false} {
		if begun, err := f.BeginFinding(t.Context(), start); err != nil || begun != want {
			t.Errorf("start %d: %v, %v", i, begun, err)
		}
	}
	var seen []model.FindingStart
	err := f.WatchFindingStarts(t.Context(), 0, func(c store.RecordChange[model.FindingStart]) error {
		if c.Type == store.Bookmark {
			return errEnough
		}
		if c.Type == store.Put {
			seen = append(seen, c.Record)
		}
		return nil
	})
	if !errors.Is(err, errEnough) || len(seen) != 1 || seen[0] != start {
		t.Errorf("%+v, %v", seen, err)
	}
	for i, want := range []bool{true, false} {
		if ended, err := f.EndFinding(t.Context(), start); err != nil || ended != want {
			t.Errorf("end %d: %v, %v", i, ended, err)
		}
	}
}
