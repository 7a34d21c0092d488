package dispatch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// outgoing bounds the messages that wait to be sent, besides updates.
	outgoing = 256
	// incoming bounds the messages that were received and not stored yet.
	incoming = 256
	// maxCommits bounds the concurrent reservation commits and loads of one gateway.
	maxCommits = 64
)

// gatewayStream is one gateway's stream. Its messages arrive in order and are stored in that order, except for reservations,
// which gateways order themselves.
type gatewayStream struct {
	service    *Service
	stream     pb.GatewayStreamService_ConnectServer
	connection *store.Connection
	name       string
	number     uint32
	runs       desired.Process
	log        *slog.Logger
	// welcome: the process has received its welcome.
	welcome bool

	buildRequested chan struct{}
	out            chan *pb.ConnectResponse
	commits        chan struct{}
	working        sync.WaitGroup
	// ended is closed when out is no longer sent.
	ended chan struct{}
	// heldDigest is the digest of the state that the gateway reported to have.
	heldDigest []byte
	// sent is the state that was sent last; nil before the first update.
	sent desired.State
	// about is the part of sent that acknowledgements refer to.
	about sentState
	// buildCache has the parts from which sent was built, basis its other inputs, and touched the volumes that have changed
	// since.
	buildCache desired.Cache
	basis      basis
	touched    touched
	// exported are the names of volumes that the gateway received, or will receive once they are made. The hub uses them.
	exported atomic.Pointer[map[string]bool]
	sessions sessionRecorder
	applied  acknowledged
	// version of the last update. Each update of a stream has a greater one, so that acknowledgements identify updates.
	version uint64
	// lastKeepAlive is the time at which the connection was last kept alive.
	lastKeepAlive time.Time
	// lastLiveLoad is the time at which the gateway's live load was last stored.
	lastLiveLoad time.Time
	// unstored: the store did not accept a message of the gateway. probed is the time of the last check whether it accepts writes
	// again.
	unstored bool
	probed   time.Time
}

// triggerBuild triggers a new build of the desired state. It never blocks.
func (g *gatewayStream) triggerBuild() {
	select {
	case g.buildRequested <- struct{}{}:
	default:
	}
}

// exports reports whether a change is of a volume that the gateway received or will receive.
func (g *gatewayStream) exports(change view.Change) bool {
	known := g.exported.Load()
	return change.Kind == model.KindVolume && known != nil && (*known)[change.Name]
}

func (g *gatewayStream) close() {
	g.service.hub.remove(g)
	close(g.ended) // the stream's own context lasts until this returns
	g.working.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := g.connection.Close(ctx); err != nil {
		g.log.Warn("the end of a stream could not be stored; its lease will end", "problem", err)
	}
}

// serve runs the stream until it ends.
func (g *gatewayStream) serve(messages <-chan *pb.ConnectRequest, failed <-chan error) error {
	ctx, cancel := context.WithCancelCause(g.stream.Context())
	defer cancel(nil)
	sending := make(chan error, 1)
	go func() {
		err := g.send(ctx)
		cancel(err)
		sending <- err
	}()
	observing := g.watchJobs(ctx)
	err := g.listen(ctx, messages, failed)
	cancel(err)
	observing()
	if sent := <-sending; err == nil || errors.Is(err, context.Canceled) {
		err = sent
	}
	return err
}

// listen handles messages until the gateway is silent for silenceLimit or its stream fails.
func (g *gatewayStream) listen(ctx context.Context, messages <-chan *pb.ConnectRequest, failed <-chan error) error {
	silence := time.NewTimer(silenceLimit)
	defer silence.Stop()
	for {
		select {
		case message := <-messages:
			for message != nil {
				observed, next := gatherReports(message, messages)
				if err := g.handleMessage(ctx, message, observed); err != nil {
					return err
				}
				message = next
			}
			silence.Reset(silenceLimit) // restart here: while handleMessage waited for a hanging store, no message was read
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-silence.C:
			return status.Errorf(codes.DeadlineExceeded, "nothing heard for %v", silenceLimit)
		case <-g.service.stop:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// gatherReports gathers successive reports on several volumes, so that they are stored in one transaction. next is the following
// message, which is handled after them; nil: none. A volume occurs once, so that no report on it is skipped.
func gatherReports(first *pb.ConnectRequest, messages <-chan *pb.ConnectRequest) (observed []*pb.VolumeObserved, next *pb.ConnectRequest) {
	message := first
	seen := map[string]bool{}
	for {
		volume := message.GetVolumeObserved()
		if volume == nil || seen[volume.GetUid()] || len(observed) == incoming {
			if message == first {
				return nil, nil
			}
			return observed, message
		}
		seen[volume.GetUid()] = true
		observed = append(observed, volume)
		select {
		case message = <-messages:
		default:
			return observed, nil
		}
	}
}

// send sends the gateway its desired state, each change of it, and the messages in out.
func (g *gatewayStream) send(ctx context.Context) error {
	if !g.welcome {
		welcome := &pb.ConnectResponse_Welcome{Welcome: g.service.newWelcome(g.number)}
		if err := g.stream.Send(&pb.ConnectResponse{Message: welcome}); err != nil {
			return err
		}
	}
	var pace pace
	rest := func() (<-chan time.Time, error) {
		began := time.Now()
		count, err := g.update()
		return time.After(pace.pauseAfter(time.Now(), time.Since(began), len(g.sent), count)), err
	}
	// The first update comes before any job: a gateway refuses a job of a pool that no update has named.
	rested, err := rest()
	if err != nil {
		return err
	}
	var woken chan struct{} // nil during the rest between updates
	for {
		select {
		case <-woken:
			if rested, err = rest(); err != nil {
				return err
			}
			woken = nil
		case <-rested:
			woken, rested = g.buildRequested, nil
		case message := <-g.out:
			if err := g.stream.Send(message); err != nil {
				return err
			}
		case <-g.service.stop:
			goodbye := &pb.StreamGoodbye{Reason: "this replica is stopping"}
			return g.stream.Send(&pb.ConnectResponse{Message: &pb.ConnectResponse_Goodbye{Goodbye: goodbye}})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// update sends what has changed since the last update, and returns the number of changes. It ends the stream of a gateway that is
// no longer in the store.
func (g *gatewayStream) update() (count int, err error) {
	var sent []*pb.StreamUpdate
	known := false
	settings := desired.Settings{ClusterID: g.service.options.ClusterID, SystemID: g.service.options.Store.SystemID(),
		OUI: g.service.options.OUI}
	settings.Keys, settings.Roots = g.service.hub.forwardingKeys()
	g.service.options.View.Read(func(o *objects.Objects) {
		gateway := o.Gateways[g.name]
		if gateway == nil || gateway.Status.Number != g.number {
			return
		}
		known = true
		version := max(uint64(max(o.Version, 1)), g.version+1)
		volumes := g.touched.drain()
		var amended bool
		if sent, amended = g.amend(o, gateway, settings, volumes, version); !amended {
			sent = g.renew(o, gateway, settings, version)
		}
		if sent != nil {
			g.version, g.about.version, g.about.at = version, version, time.Now()
		} else {
			g.about.version = 0
		}
	})
	if !known {
		return 0, status.Errorf(codes.FailedPrecondition, "gateway %s was deleted", g.name)
	}
	g.applied.sending(g.about)
	for _, update := range sent {
		if err := g.stream.Send(&pb.ConnectResponse{Message: &pb.ConnectResponse_Update{Update: update}}); err != nil {
			return 0, err
		}
		count += len(update.GetPut()) + len(update.GetRemoved())
	}
	return count, nil
}

// renew builds the state, and the updates that lead to it from the state that was sent.
func (g *gatewayStream) renew(o *objects.Objects, gateway *model.Gateway, settings desired.Settings, version uint64) []*pb.StreamUpdate {
	var next desired.State
	next, g.buildCache = desired.Build(o, gateway, g.runs, settings, g.buildCache)
	g.about = sentStateOf(o, gateway, next, g.about, g.sent.SameKeys(next))
	g.basis = basis{o.Layout(), settings, next.Proof()}
	exported := g.buildCache.VolumeNames()
	g.exported.Store(&exported)
	from := g.sent
	g.sent = next
	if from == nil && len(g.heldDigest) > 0 && bytes.Equal(g.heldDigest, next.Digest()) {
		// The gateway already has this state. It still waits for its first update.
		return []*pb.StreamUpdate{{Version: version, Digest: next.Digest()}}
	}
	return desired.Updates(from, next, version)
}

// answer queues a message for the gateway. If the gateway does not read, its stream ends, so that memory stays bounded.
func (g *gatewayStream) answer(ctx context.Context, message *pb.ConnectResponse) {
	select {
	case g.out <- message:
	case <-ctx.Done():
	case <-g.ended:
	}
}

// watchJobs sends the gateway its jobs, and the evictions of its sessions, until the returned function is called.
func (g *gatewayStream) watchJobs(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	g.working.Add(2)
	go func() {
		defer g.working.Done()
		g.runRepeatedly(ctx, "jobs", func(ctx context.Context) error {
			jobs := jobQueue{gateway: g.number, sent: map[string]attempt{}}
			return g.service.options.Store.WatchJobs(ctx, 0, func(change store.RecordChange[*model.Job]) error {
				for _, job := range jobs.apply(change) {
					g.answer(ctx, &pb.ConnectResponse{Message: &pb.ConnectResponse_Job{Job: jobMessage(job)}})
				}
				return nil
			})
		})
	}()
	go func() {
		defer g.working.Done()
		g.runRepeatedly(ctx, "evictions", func(ctx context.Context) error {
			return g.service.options.Store.WatchEvictions(ctx, g.number, func(tsihs []uint32) error {
				slices.Sort(tsihs)
				g.answer(ctx, &pb.ConnectResponse{Message: &pb.ConnectResponse_EvictSessions{
					EvictSessions: &pb.EvictSessions{Tsihs: tsihs}}})
				return nil
			})
		})
	}()
	return cancel
}

// runRepeatedly restarts run until the context ends.
func (g *gatewayStream) runRepeatedly(ctx context.Context, what string, run func(context.Context) error) {
	for ctx.Err() == nil {
		err := run(ctx)
		if ctx.Err() != nil {
			return
		}
		g.log.Warn("a watch failed; it starts again", "of", what, "problem", err)
		select {
		case <-ctx.Done():
		case <-time.After(heartbeatInterval):
		}
	}
}
