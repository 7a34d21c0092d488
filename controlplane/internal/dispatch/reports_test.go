package dispatch

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// observedRecords returns the keys of the stored reports on volumes.
func (r *replica) observedRecords() (uids []string) {
	r.t.Helper()
	ctx, stop := context.WithCancel(bounded(r.t))
	defer stop()
	_ = r.WatchObserved(ctx, 0, func(change store.RecordChange[model.Observed]) error {
		if change.Type == store.Put && change.Record.Volume != nil {
			uids = append(uids, change.Record.Volume.UID)
		}
		if change.Type == store.Bookmark {
			stop()
		}
		return nil
	})
	return uids
}

func observed(uid, reason string) *pb.ConnectRequest {
	return &pb.ConnectRequest{Message: &pb.ConnectRequest_VolumeObserved{VolumeObserved: &pb.VolumeObserved{
		Uid: uid, Epoch: 1, State: pb.VolumeState_VOLUME_STATE_FAILED, Reason: reason}}}
}

func TestReportsAboutVolumesThatDoNotConcernTheGatewayAreIgnored(t *testing.T) {
	r := start(t)
	create(r, r.Gateways, &model.Gateway{Meta: model.Meta{Name: "gw-2"}, Spec: model.GatewaySpec{
		GatewayPool: "default", Node: "node-2", ForwardingAddress: "127.0.0.2:3261",
		Portals: []model.Portal{{Listen: "127.0.0.2:3260", Fabric: "red"}}}})
	other := hello("second")
	other.Gateway = "gw-2"
	stranger, owner := r.connect(other), r.connect(hello("first"))
	stranger.update()
	owner.update()
	for i := range 150 {
		stranger.send(observed(fmt.Sprintf("no-volume-%d", i), "x"))
	}
	stranger.send(observed(r.volume.Meta.UID, "not its own"))
	// A later message on the same stream is handled after them: a load of reservations that the gateway may not read.
	load := func(g *gateway) *pb.ReservationState {
		g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_ReservationLoad{ReservationLoad: &pb.ReservationLoad{
			RequestId: 7, VolumeUid: r.volume.Meta.UID, Epoch: 1}}})
		return g.next(func(m *pb.ConnectResponse) bool { return m.GetReservationState() != nil }).GetReservationState()
	}
	if got := load(stranger); got.GetResult() != pb.CommitResult_COMMIT_RESULT_FENCED {
		t.Errorf("a gateway that is not assigned the volume loads its reservations: %v", got)
	}
	owner.send(observed(r.volume.Meta.UID, strings.Repeat("ü", maxReason)))
	if got := load(owner); got.GetResult() != pb.CommitResult_COMMIT_RESULT_COMMITTED {
		t.Errorf("the owner loads its reservations: %v", got)
	}
	if got := r.observedRecords(); !slices.Equal(got, []string{r.volume.Meta.UID}) {
		t.Errorf("reports on %v are stored, want the owner's alone", got)
	}
}

func iqnOf(target string) string { return "iqn.2026-11.example:" + target }

// exports creates a target that gateway gw-1 exports to these hosts, and the hosts. It returns their uids.
func (r *replica) exports(name string, hosts ...string) (uids []string) {
	r.t.Helper()
	for _, host := range hosts {
		made := &model.Host{Meta: model.Meta{Name: host}, Spec: model.HostSpec{Initiators: []string{iqnOf(host)}, AllowUnauthenticated: true}}
		create(r, r.Hosts, made)
		uids = append(uids, made.Meta.UID)
	}
	create(r, r.Targets, &model.Target{Meta: model.Meta{Name: name},
		Spec: model.TargetSpec{IQN: iqnOf(name), GatewayPool: "default", Paths: 1, Hosts: hosts}})
	gateway, err := r.Gateways.Get(r.t.Context(), "gw-1")
	if err == nil {
		_, err = storetest.Modify(r.t.Context(), r.term(), name, func(target *model.Target) (bool, error) {
			target.Status.PathSet = []uint32{gateway.Status.Number}
			return true, nil
		})
	}
	if err == nil {
		err = r.service.catchUp(r.t.Context(), 0) // the gateway's next message must find the target
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return uids
}

// registered returns the sessions of the register, as "gateway target host".
func (r *replica) registered() (all []string) {
	r.t.Helper()
	ctx, stop := context.WithCancel(bounded(r.t))
	defer stop()
	_ = r.WatchSessions(ctx, 0, func(change store.RecordChange[*model.Session]) error {
		switch change.Type {
		case store.Put:
			all = append(all, strings.Join([]string{change.Record.Gateway, change.Record.TargetIQN, change.Record.HostUID}, " "))
		case store.Bookmark:
			stop()
		}
		return nil
	})
	return all
}

// A false session would count for its host on all gateways, and the host's real sessions would be asked to log out.
func TestSessionsThatDoNotConcernTheGatewayAreIgnored(t *testing.T) {
	r := start(t)
	create(r, r.Gateways, &model.Gateway{Meta: model.Meta{Name: "gw-2"}, Spec: model.GatewaySpec{
		GatewayPool: "default", Node: "node-2", ForwardingAddress: "127.0.0.2:3261",
		Portals: []model.Portal{{Listen: "127.0.0.2:3260", Fabric: "red"}}}})
	hosts, others := r.exports("t", "web"), r.exports("u", "db")
	other := hello("second")
	other.Gateway = "gw-2"
	stranger, exporter := r.connect(other), r.connect(hello("first"))
	stranger.update()
	exporter.update()
	session := func(tsih uint32, target, host string) *pb.SessionObserved {
		return &pb.SessionObserved{Tsih: tsih, Isid: "400000000001", TargetIqn: target, HostUid: host}
	}
	full := func(put ...*pb.SessionObserved) *pb.ConnectRequest {
		return &pb.ConnectRequest{Message: &pb.ConnectRequest_SessionsObserved{SessionsObserved: &pb.SessionsObserved{Full: true, Put: put}}}
	}
	stranger.send(full(session(1, iqnOf("t"), hosts[0]), session(2, iqnOf("never"), ""), session(3, "", hosts[0])))
	stranger.settled()
	exporter.send(full(session(1, iqnOf("t"), hosts[0]), session(2, iqnOf("t"), others[0]), session(3, iqnOf("t"), "no host"), session(4, iqnOf("u"), others[0])))
	exporter.settled()
	got := r.registered()
	slices.Sort(got)
	if want := []string{"gw-1 " + iqnOf("t") + " " + hosts[0], "gw-1 " + iqnOf("u") + " " + others[0]}; !slices.Equal(got, want) {
		t.Errorf("the register has %v, want %v", got, want)
	}
}

// settled waits until all earlier messages are handled: this message gets an answer.
func (g *gateway) settled() {
	g.t.Helper()
	g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_ReservationLoad{ReservationLoad: &pb.ReservationLoad{RequestId: 9, VolumeUid: "none"}}})
	g.next(func(m *pb.ConnectResponse) bool { return m.GetReservationState() != nil })
}

// The data that the control plane stores about a gateway is bounded, whatever the gateway sends.
func TestAFloodClosesTheStreamAndTheMemoryDoesNotGrow(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	g.update()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	text := strings.Repeat("x", 1<<20)
	for i := range 150 {
		if g.stream.Send(observed(fmt.Sprintf("no-volume-%d", i), text)) != nil {
			break // it is closed
		}
	}
	if code := g.ends(); code != codes.ResourceExhausted {
		t.Errorf("the stream ends with %v", code)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+32<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
	if stored := r.observedRecords(); len(stored) != 0 {
		t.Errorf("%d reports are stored", len(stored))
	}
	again, err := r.client.Connect(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Hello{Hello: hello("first")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Recv(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "connect again in") {
		t.Errorf("at once it connects again: %v", err)
	}
}

func TestMessagesAreBoundedInTheirStringsListsAndRate(t *testing.T) {
	parameters := map[string]string{}
	for i := range maxPerSession + 1 {
		parameters[fmt.Sprint(i)] = "x"
	}
	refused := map[string]*pb.ConnectRequest{
		"VolumeObserved.uid": observed(strings.Repeat("x", maxText+1), ""),
		"SessionObserved.parameters": {Message: &pb.ConnectRequest_SessionsObserved{SessionsObserved: &pb.SessionsObserved{
			Put: []*pb.SessionObserved{{Parameters: parameters}}}}},
		"StreamHeartbeat.loads": {Message: &pb.ConnectRequest_Heartbeat{Heartbeat: &pb.StreamHeartbeat{
			Loads: make([]*pb.VolumeLoad, maxEntries+1)}}},
		"ReservationCommit.state": {Message: &pb.ConnectRequest_ReservationCommit{ReservationCommit: &pb.ReservationCommit{
			State: make([]byte, model.MaxReservationState+1)}}},
		"JobResult.images": {Message: &pb.ConnectRequest_JobResult{JobResult: &pb.JobResult{
			Images: []string{strings.Repeat("x", maxText+1)}}}},
	}
	for field, message := range refused {
		if err := within(message); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := within(observed("uid", strings.Repeat("x", maxText))); err != nil {
		t.Error(err)
	}
	now := time.Now()
	q := newQuota(now)
	for i := range burstMessages {
		if err := q.spend(now, 100); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := q.spend(now, 100); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("too many messages: %v", err)
	}
	if err := q.spend(now.Add(time.Second), 100); err != nil {
		t.Errorf("a second later: %v", err)
	}
}
