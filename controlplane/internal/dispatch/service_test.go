package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

// replica is a control plane of one replica with gateway gw-1, which owns the volume orders.
type replica struct {
	*store.Store
	t      *testing.T
	client pb.GatewayStreamServiceClient
	// caller is the name in the certificate; nil: no certificate is required.
	caller *string
	volume *model.Volume
	events recordedEvents
	// service is the one whose view the function own waits for.
	service *Service
	// term elects the test when it is first called.
	term func() *store.Term
}

func start(t *testing.T) *replica { return startWith(t, shared.Client) }

func startWith(t *testing.T, client *clientv3.Client) *replica {
	t.Helper()
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{Store: kept, t: t, events: make(recordedEvents, 64),
		term: sync.OnceValue(func() *store.Term { return storetest.Lead(t, kept) })}
	log := slog.New(slog.DiscardHandler)
	seen := view.New(kept, log)
	service := New(Options{Store: kept, View: seen, Log: log, Replica: "r", ClusterID: "c", Events: r.events,
		Caller: func(context.Context) (string, bool) {
			if r.caller == nil {
				return "", false
			}
			return *r.caller, true
		}})
	r.service = service
	ctx, stop := context.WithCancel(context.Background())
	server := grpc.NewServer()
	pb.RegisterGatewayStreamServiceServer(server, service)
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }()
	go func() { _ = seen.Run(ctx) }()
	go func() { _ = service.Run(ctx) }()
	connection, err := grpc.NewClient("passthrough:bufnet", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(); stop(); server.Stop() })
	r.client = pb.NewGatewayStreamServiceClient(connection)
	r.populate()
	return r
}

func create[T model.Object](r *replica, objects *store.Collection[T], object T) {
	r.t.Helper()
	if err := objects.Create(r.t.Context(), object, false); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replica) populate() {
	create(r, r.Fabrics, &model.Fabric{Meta: model.Meta{Name: "red"}})
	create(r, r.GatewayPools, &model.GatewayPool{Meta: model.Meta{Name: "default"},
		Spec: model.GatewayPoolSpec{Fabrics: []string{"red"}}})
	create(r, r.Gateways, &model.Gateway{Meta: model.Meta{Name: "gw-1"}, Spec: model.GatewaySpec{
		GatewayPool: "default", Node: "node-1", ForwardingAddress: "127.0.0.1:3261",
		Portals: []model.Portal{{Listen: "127.0.0.1:3260", Fabric: "red"}}}})
	create(r, r.StoragePools, &model.StoragePool{Meta: model.Meta{Name: "nvme"},
		Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "node-1", Directory: "/srv"}}})
	create(r, r.Volumes, &model.Volume{Meta: model.Meta{Name: "orders"}, Spec: model.VolumeSpec{Pool: "nvme", SizeBytes: 1 << 20}})
	gateway, err := r.Gateways.Get(r.t.Context(), "gw-1")
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = storetest.Modify(r.t.Context(), r.term(), "orders", func(v *model.Volume) (bool, error) {
		v.Status.CapacityBytes = 1 << 20
		return true, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.own(func(o model.Ownership) (model.Ownership, error) {
		return o.Assign(model.GatewayRef{Number: gateway.Status.Number, Incarnation: "first"})
	})
}

func (r *replica) own(change func(model.Ownership) (model.Ownership, error)) {
	r.t.Helper()
	changed, err := r.term().Own(r.t.Context(), "orders", func(v *model.Volume) (model.Ownership, error) {
		return change(v.Status.Ownership)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.volume = changed
	// The gateway's next message must find this owner, and the view lags behind the store for a moment.
	if err := r.service.catchUp(r.t.Context(), 0); err != nil {
		r.t.Fatal(err)
	}
}

func TestAGatewayHearsWhatItShallBeAndThenEveryChange(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	welcome := g.next(func(m *pb.ConnectResponse) bool { return m.GetWelcome() != nil }).GetWelcome()
	if welcome.GetNumber() == 0 || welcome.GetProtocol() != 1 {
		t.Errorf("welcome: %v", welcome)
	}
	first := g.update()
	if v := find(first, r.volume.Meta.UID); !first.GetFull() || v.GetRole() != pb.VolumeRole_VOLUME_ROLE_OWNER || v.GetEpoch() != 1 {
		t.Fatalf("the first update: %v", first)
	}
	r.own(func(o model.Ownership) (model.Ownership, error) { return o.Serving(o.Owner, o.Epoch) })
	second := g.update()
	v := find(second, r.volume.Meta.UID)
	if second.GetFull() || v == nil || v.GetOrder() != 2 || second.GetVersion() < first.GetVersion() {
		t.Errorf("the second update: %v, want a delta with the volume under order 2", second)
	}
}

func TestAGatewayWithTheCurrentStateReceivesNoUpdate(t *testing.T) {
	r := start(t)
	first := r.connect(hello("first")).update()
	again := hello("first")
	again.HeldVersion, again.HeldDigest = first.GetVersion(), first.GetDigest()
	update := r.connect(again).update()
	if update.GetFull() || len(update.GetPut()) != 0 || string(update.GetDigest()) != string(first.GetDigest()) {
		t.Errorf("it receives %v", update)
	}
}

func TestARefusedGatewayReceivesTheReason(t *testing.T) {
	r := start(t)
	stranger := hello("first")
	stranger.Gateway = "gw-9"
	future := hello("first")
	future.MinProtocol, future.MaxProtocol = 7, 9
	for name, c := range map[string]struct {
		hello  *pb.StreamHello
		caller *string
		want   codes.Code
	}{
		"a gateway that does not exist":   {stranger, nil, codes.FailedPrecondition},
		"a protocol of another age":       {future, nil, codes.FailedPrecondition},
		"another gateway's certificate":   {hello("first"), new("gw-2"), codes.PermissionDenied},
		"a certificate without a name":    {hello("first"), new(""), codes.PermissionDenied},
		"a process without a name of its": {hello(""), nil, codes.InvalidArgument},
	} {
		r.caller = c.caller
		if got := r.connect(c.hello).ends(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// R4: a replaced process stays replaced.
func TestANewIncarnationTakesThePlaceOfTheOldWhichNeverReturns(t *testing.T) {
	r := start(t)
	old := r.connect(hello("first"))
	old.update()
	r.connect(hello("second")).update()
	if got := old.ends(); got != codes.Aborted {
		t.Errorf("the old stream ended with %v", got)
	}
	if got := r.connect(hello("first")).ends(); got != codes.Aborted {
		t.Errorf("the old incarnation came again and got %v", got)
	}
}

// R8, R3.
func TestAReservationIsStoredForThePresentEpochAndGenerationOnly(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	g.update() // it is admitted
	commit := func(id, epoch, generation uint64) pb.CommitResult {
		g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_ReservationCommit{ReservationCommit: &pb.ReservationCommit{
			RequestId: id, VolumeUid: r.volume.Meta.UID, Epoch: epoch, ExpectedGeneration: generation, State: []byte("held")}}})
		outcome := g.next(func(m *pb.ConnectResponse) bool { return m.GetReservationOutcome() != nil }).GetReservationOutcome()
		if outcome.GetRequestId() != id {
			t.Errorf("request %d was answered as %d", id, outcome.GetRequestId())
		}
		return outcome.GetResult()
	}
	for i, want := range []struct {
		epoch, generation uint64
		result            pb.CommitResult
	}{
		{1, 0, pb.CommitResult_COMMIT_RESULT_COMMITTED}, {1, 0, pb.CommitResult_COMMIT_RESULT_CONFLICT},
		{1, 1, pb.CommitResult_COMMIT_RESULT_COMMITTED}, {2, 2, pb.CommitResult_COMMIT_RESULT_FENCED},
	} {
		if got := commit(uint64(i+1), want.epoch, want.generation); got != want.result {
			t.Errorf("epoch %d, generation %d: %v, want %v", want.epoch, want.generation, got, want.result)
		}
	}
	g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_ReservationLoad{ReservationLoad: &pb.ReservationLoad{
		RequestId: 9, VolumeUid: r.volume.Meta.UID, Epoch: 1}}})
	state := g.next(func(m *pb.ConnectResponse) bool { return m.GetReservationState() != nil }).GetReservationState()
	if state.GetGeneration() != 2 || string(state.GetState()) != "held" {
		t.Errorf("loaded: %v", state)
	}
}

// R2: a client is recorded before its gateway gets the answer.
func TestAClientOfCephIsRecordedBeforeItsGatewayIsInformed(t *testing.T) {
	r := start(t)
	create(r, r.StoragePools, &model.StoragePool{Meta: model.Meta{Name: "ceph"}, Spec: model.StoragePoolSpec{
		RBD: &model.RBDPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Pool: "rbd", Key: model.NewSecret("k")}}})
	pool, err := r.StoragePools.Get(t.Context(), "ceph")
	if err != nil {
		t.Fatal(err)
	}
	g := r.connect(hello("first"))
	g.update() // it is admitted
	commit := func(id uint64, client string) pb.CommitResult {
		g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_RadosClientCommit{RadosClientCommit: &pb.RadosClientCommit{
			RequestId: id, PoolUid: pool.Meta.UID, Client: client}}})
		outcome := g.next(func(m *pb.ConnectResponse) bool { return m.GetRadosClientOutcome() != nil }).GetRadosClientOutcome()
		if outcome.GetRequestId() != id {
			t.Errorf("request %d was answered as %d", id, outcome.GetRequestId())
		}
		return outcome.GetResult()
	}
	if got := commit(1, "192.0.2.1:0/1"); got != pb.CommitResult_COMMIT_RESULT_COMMITTED {
		t.Fatalf("%v", got)
	}
	var stored *model.RadosClients
	err = r.WatchRadosClients(bounded(t), 0, func(change store.RecordChange[*model.RadosClients]) error {
		if stored = change.Record; change.Type == store.Put {
			return context.Canceled
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || stored.Gateway.Incarnation != "first" ||
		!slices.Equal(stored.Open(), []string{"192.0.2.1:0/1"}) {
		t.Fatalf("stored: %+v, %v", stored, err)
	}
	if _, err := r.term().FenceRadosClients(t.Context(), stored, stored.All()); err != nil {
		t.Fatal(err)
	}
	if got := commit(2, "192.0.2.1:0/1"); got != pb.CommitResult_COMMIT_RESULT_FENCED {
		t.Errorf("a client that was fenced: %v", got)
	}
	if got := commit(3, ""); got != pb.CommitResult_COMMIT_RESULT_NOT_COMMITTED {
		t.Errorf("no client at all: %v", got)
	}
}

func TestTheVolumeReportsOfAGatewayAreStored(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	g.update() // it is admitted
	g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_VolumeObserved{VolumeObserved: &pb.VolumeObserved{
		Uid: r.volume.Meta.UID, Epoch: 1, Order: 1, State: pb.VolumeState_VOLUME_STATE_SERVING}}})
	err := r.WatchObserved(bounded(t), 0, func(change store.RecordChange[model.Observed]) error {
		if report := change.Record.Volume; change.Type == store.Put && report != nil {
			if report.State != model.VolumeServing || report.Gateway.Incarnation != "first" {
				t.Errorf("stored: %v", report)
			}
			return context.Canceled
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("nothing was stored: %v", err)
	}
}

func TestASessionIsInTheRegisterAndEndsWhereThatIsAskedFor(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	g.update() // it is admitted
	r.exports("t")
	g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_SessionsObserved{SessionsObserved: &pb.SessionsObserved{
		Full: true, Put: []*pb.SessionObserved{{Tsih: 7, Isid: "400000000001", Initiator: "iqn.2026-11.example:web", TargetIqn: iqnOf("t")}}}}})
	var session *model.Session
	err := r.WatchSessions(bounded(t), 0, func(change store.RecordChange[*model.Session]) error {
		if change.Type == store.Put {
			session = change.Record
			return context.Canceled
		}
		return nil
	})
	if session == nil {
		t.Fatal(err)
	}
	if session.Name() != "gw-1.7.400000000001" {
		t.Errorf("its name is %s", session.Name())
	}
	if err := r.EvictSession(t.Context(), session, false); err != nil {
		t.Fatal(err)
	}
	evict := g.next(func(m *pb.ConnectResponse) bool { return m.GetEvictSessions() != nil }).GetEvictSessions()
	if len(evict.GetTsihs()) != 1 || evict.GetTsihs()[0] != 7 {
		t.Errorf("evicted: %v", evict.GetTsihs())
	}
}

// R1: the stream of a killed gateway ends at once, and the store must record that at once.
func TestTheEndOfAStreamIsStored(t *testing.T) {
	r := start(t)
	ctx, stop := context.WithCancel(t.Context())
	stream, err := r.client.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Hello{Hello: hello("first")}}); err != nil {
		t.Fatal(err)
	}
	err = r.WatchObserved(bounded(t), 0, func(change store.RecordChange[model.Observed]) error {
		if change.Record.Connection == nil {
			return nil
		}
		if change.Type == store.Deleted {
			return context.Canceled
		}
		stop()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended without the end of the stream: %v", err)
	}
}
