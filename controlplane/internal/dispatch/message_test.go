package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// full is an etcd that refuses writes while `is` is set. It still reads and renews leases, as an etcd without space does.
type full struct {
	clientv3.KV
	is      atomic.Bool
	refused atomic.Int32
	why     error
	// only restricts the refusals to keys that contain it.
	only string
	// pause precedes the answer to such writes.
	pause time.Duration
}

type fullTxn struct {
	clientv3.Txn
	etcd   *full
	struck bool
}

func (f *full) Txn(ctx context.Context) clientv3.Txn { return &fullTxn{Txn: f.KV.Txn(ctx), etcd: f} }

func (t *fullTxn) If(cmps ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cmps...)
	return t
}

func (t *fullTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	t.struck = slices.ContainsFunc(ops, func(op clientv3.Op) bool { return strings.Contains(string(op.KeyBytes()), t.etcd.only) })
	return t
}

func (t *fullTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.struck {
		time.Sleep(t.etcd.pause)
	}
	if t.struck && t.etcd.is.Load() {
		t.etcd.refused.Add(1)
		return nil, t.etcd.why
	}
	return t.Txn.Commit()
}

// unending are leases that do not expire while the simulated store hangs, just as a hanging etcd ends no lease.
type unending struct{ clientv3.Lease }

func (l unending) Grant(ctx context.Context, _ int64) (*clientv3.LeaseGrantResponse, error) {
	return l.Lease.Grant(ctx, 60)
}

// startFull starts a replica whose etcd refuses, with an error, writes to keys that contain only.
func startFull(t *testing.T, why error, only string) (*replica, *full) {
	t.Helper()
	etcd := &full{KV: shared.Client.KV, why: why, only: only}
	client := clientv3.NewCtxClient(context.Background())
	client.KV, client.Lease, client.Watcher, client.Maintenance = etcd, unending{shared.Client.Lease}, shared.Client.Watcher,
		shared.Client.Maintenance
	return startWith(t, client), etcd
}

func serving(uid string) *pb.ConnectRequest {
	return &pb.ConnectRequest{Message: &pb.ConnectRequest_VolumeObserved{VolumeObserved: &pb.VolumeObserved{
		Uid: uid, Epoch: 1, Order: 1, State: pb.VolumeState_VOLUME_STATE_SERVING}}}
}

// served reports whether the store has the report that the volume is served.
func (r *replica) served() bool {
	r.t.Helper()
	known := false
	err := r.WatchObserved(bounded(r.t), 0, func(change store.RecordChange[model.Observed]) error {
		if change.Type == store.Bookmark {
			return context.Canceled
		}
		known = known || change.Type == store.Put && change.Record.Volume != nil
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		r.t.Fatal(err)
	}
	return known
}

func (e *full) awaitRefusals(t *testing.T, count int32) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); e.refused.Load() < count; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d writes were refused, want %d", e.refused.Load(), count)
		}
	}
}

// R3: without a store no other stream is possible.
func TestReportsThatTheStoreRefusedAreRequestedAgain(t *testing.T) {
	r, etcd := startFull(t, rpctypes.ErrNoSpace, "")
	uid := r.volume.Meta.UID
	owner, err := r.Gateways.Get(t.Context(), "gw-1")
	if err != nil {
		t.Fatal(err)
	}
	job, err := r.term().PutJob(t.Context(), model.Job{ID: uid + ".resize", Kind: model.KindVolume, Name: "orders",
		Gateway: owner.Status.Number, Action: model.JobResizeImage, SizeBytes: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	asked := func(m *pb.ConnectResponse) bool { return m.GetJob() != nil }
	say := func(g *gateway) {
		got := g.next(asked).GetJob()
		g.send(serving(uid))
		g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_JobResult{JobResult: &pb.JobResult{Id: got.GetId(),
			Attempt: got.GetAttempt(), DonePermille: 1000}}})
	}
	g := r.connect(hello("first"))
	g.update() // it is admitted
	etcd.is.Store(true)
	say(g)
	ended := make(chan codes.Code, 1)
	go func() { ended <- g.ends() }()
	etcd.awaitRefusals(t, 6) // its report was tried again and again
	select {
	case code := <-ended:
		t.Fatalf("the stream ended with %v while the store takes nothing", code)
	default:
	}
	etcd.is.Store(false)
	select {
	case code := <-ended:
		if code != codes.Unavailable {
			t.Errorf("the stream ended with %v", code)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the store takes writes again, and the stream goes on as if all were stored")
	}
	if r.served() {
		t.Fatal("it was stored nevertheless")
	}
	say(r.connect(hello("first")))
	err = r.WatchJobs(bounded(t), 0, func(c store.RecordChange[*model.Job]) error {
		if c.Type == store.Put && c.Record.ID == job.ID && c.Record.Succeeded() {
			return context.Canceled
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || !r.served() {
		t.Errorf("said again, it is not stored: %v", err)
	}
}

// It would be refused over every stream.
func TestAReportThatIsTooLargeForTheStoreEndsNoStream(t *testing.T) {
	r, etcd := startFull(t, rpctypes.ErrTooManyOps, "/observed/volume/")
	g := r.connect(hello("first"))
	g.update() // it is admitted
	etcd.is.Store(true)
	g.send(serving(r.volume.Meta.UID))
	etcd.awaitRefusals(t, 1)
	etcd.is.Store(false)
	ended := make(chan codes.Code, 1)
	go func() { ended <- g.ends() }()
	select {
	case code := <-ended:
		t.Errorf("the stream ended with %v", code)
	case <-time.After(4 * heartbeatInterval):
	}
}

// R3: a gateway is not silent while no replica reads its messages.
func TestAGatewayDoesNotCountAsSilentWhileTheStoreHangs(t *testing.T) {
	r, etcd := startFull(t, rpctypes.ErrNoSpace, "/observed/volume/")
	etcd.pause = silenceLimit + heartbeatInterval
	g := r.connect(hello("first"))
	g.update() // it is admitted
	ended := make(chan codes.Code, 1)
	go func() { ended <- g.ends() }()
	for order := range uint64(2) {
		report := serving(r.volume.Meta.UID)
		report.GetVolumeObserved().Order = order
		g.send(report)
		time.Sleep(heartbeatInterval / 2) // it is in progress when the other one comes
	}
	select {
	case code := <-ended:
		t.Errorf("the stream ended with %v", code)
	case <-time.After(2*etcd.pause + heartbeatInterval):
	}
}

func (r *replica) awaitSession(wanted func(*model.Session) bool) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer stop()
	err := r.WatchSessions(ctx, 0, func(change store.RecordChange[*model.Session]) error {
		if change.Type == store.Put && wanted(change.Record) {
			return context.Canceled
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		r.t.Fatalf("it is not in the register: %v", err)
	}
}

func sessions(put ...*pb.SessionObserved) *pb.ConnectRequest {
	return &pb.ConnectRequest{Message: &pb.ConnectRequest_SessionsObserved{SessionsObserved: &pb.SessionsObserved{Put: put}}}
}

// The first report of counters is stored at once, because an idle session sends no other.
func TestTheFirstCountersOfASessionAreStoredAndTheNextOnesOnlyAfterAnInterval(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	g.update() // it is admitted
	r.exports("t")
	for reads := range uint64(3) {
		g.send(sessions(&pb.SessionObserved{Tsih: 7, Isid: "400000000001", TargetIqn: iqnOf("t"), Reads: reads}))
	}
	g.send(sessions(&pb.SessionObserved{Tsih: 8, Isid: "400000000002", TargetIqn: iqnOf("t")}))
	r.awaitSession(func(s *model.Session) bool { return s.TSIH == 8 }) // the earlier reports were handled
	r.awaitSession(func(s *model.Session) bool {
		if s.TSIH == 7 && s.Reads != 1 {
			t.Errorf("%d reads are stored, not 1", s.Reads)
		}
		return s.TSIH == 7
	})
}

// Otherwise an eviction of the registered session would name one that has ended.
func TestAReusedSessionNumberDenotesANewSessionAtOnce(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	g.update() // it is admitted
	hosts := r.exports("t", "web", "db")
	r.exports("u", "third", "fourth")
	session := &pb.SessionObserved{Tsih: 7, Isid: "400000000001", Initiator: "iqn.2026-11.example:web", TargetIqn: iqnOf("t"), HostUid: hosts[0]}
	for _, change := range []func(){
		func() {},
		func() { session.HostUid = hosts[1] },
		func() { session.Isid = "400000000002" },
		func() { session.Initiator = "iqn.2026-11.example:db" },
		func() { session.TargetIqn, session.HostUid = iqnOf("u"), "" },
		func() { session.LoginTimeMs = 9 },
	} {
		change()
		g.send(sessions(session))
		r.awaitSession(func(s *model.Session) bool {
			return s.ISID == session.Isid && s.Initiator == session.Initiator && s.HostUID == session.HostUid &&
				s.TargetIQN == session.TargetIqn && s.LoginTime.UnixMilli() == session.LoginTimeMs
		})
	}
}

func TestASessionThatTheStoreRefusedDoesNotCountAsStored(t *testing.T) {
	session := &pb.SessionObserved{Tsih: 7, Isid: "400000000001", Initiator: "iqn.2026-11.example:web", TargetIqn: iqnOf("t")}
	r, etcd := startFull(t, rpctypes.ErrTooManyOps, "/sessions/") // this ends no stream
	g := r.connect(hello("first"))
	g.update() // it is admitted
	r.exports("t")
	etcd.is.Store(true)
	g.send(sessions(session))
	etcd.awaitRefusals(t, 1)
	etcd.is.Store(false)
	g.send(sessions(session))
	r.awaitSession(func(s *model.Session) bool { return s.TSIH == 7 })
}
