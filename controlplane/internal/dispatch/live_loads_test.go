package dispatch

import (
	"context"
	"errors"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var errHasLoad = errors.New("found")

// storedLoad returns the stored live load; nil: there is none.
func storedLoad(r *replica) (load *model.LiveLoad) {
	r.t.Helper()
	err := r.WatchLiveLoads(r.t.Context(), 0, func(c store.RecordChange[*model.LiveLoad]) error {
		if c.Type == store.Bookmark {
			return errHasLoad
		}
		if c.Record != nil {
			load = c.Record
		}
		return nil
	})
	if !errors.Is(err, errHasLoad) {
		r.t.Fatal(err)
	}
	return load
}

func TestLiveLoadsAreStoredOnlyAfterARequest(t *testing.T) {
	r := start(t)
	create(r, r.Hosts, &model.Host{Meta: model.Meta{Name: "loaded"},
		Spec: model.HostSpec{Initiators: []string{"iqn.2026-11.org.example:loaded"}, AllowUnauthenticated: true}})
	host, err := r.Hosts.Get(t.Context(), "loaded")
	if err != nil {
		t.Fatal(err)
	}
	g := r.connect(hello("first"))
	g.next(func(m *pb.ConnectResponse) bool { return m.GetUpdate() != nil })
	counted := &pb.ConnectRequest{Message: &pb.ConnectRequest_Heartbeat{Heartbeat: &pb.StreamHeartbeat{BootTimeMs: 5000, Sessions: 3, BusyPermille: 20,
		HostLoads: []*pb.HostLoad{{HostUid: host.Meta.UID, Reads: 9, Answered: 8}, {HostUid: "unknown", Reads: 1}}}}}
	g.send(counted)
	g.send(hostFaults(0, refusedLogin("iqn.2026-11.org.example:last")))
	storedFault(r, "iqn.2026-11.org.example:last") // the heartbeat before it was handled
	if load := storedLoad(r); load != nil {
		t.Errorf("without a request: %+v", load)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		// The watch of requests may begin after the first one.
		if err := r.RequestLiveLoads(ctx); err != nil {
			t.Fatal(err)
		}
		g.send(counted)
		load := storedLoad(r)
		if load == nil {
			continue
		}
		if load.Sessions != 3 && load.Sessions != 0 { // 0: a heartbeat of the test's own
			t.Errorf("%+v", load)
		}
		if load.Clock == 5*time.Second {
			if len(load.Hosts) != 1 || load.Hosts[host.Meta.UID].Reads != 9 || load.Hosts[host.Meta.UID].Answered != 8 || load.BusyPermille != 20 {
				t.Errorf("%+v", load)
			}
			return
		}
	}
}
