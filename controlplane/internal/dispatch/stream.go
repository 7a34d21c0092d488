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
	// outgoing bounds what waits to be sent beside updates.
	outgoing = 256
	// incoming bounds what was received and not stored yet.
	incoming = 256
	// maxCommits bounds reservation commits and loads of one gateway at a time.
	maxCommits = 64
)

// gatewayStream is one gateway's stream. Its messages come in order; what is stored of them is stored in that order, but for
// reservations, which gateways order themselves.
type gatewayStream struct {
	service    *Service
	stream     pb.GatewayStreamService_ConnectServer
	connection *store.Connection
	name       string
	number     uint32
	runs       desired.Process
	log        *slog.Logger
	// welcome says that the process has its welcome.
	welcome bool

	woken   chan struct{}
	out     chan *pb.ConnectResponse
	commits chan struct{}
	working sync.WaitGroup
	// ended: nobody sends any more what waits in out.
	ended chan struct{}
	// heldDigest is what the gateway said it holds already.
	heldDigest []byte
	// sent is the state that was sent last; nil before the first update.
	sent desired.State
	// about is the part of it that acknowledgements are about.
	about sentState
	// buildCache has the parts that sent was built of, basis its other inputs, and touched the volumes that have changed since.
	buildCache desired.Cache
	basis      basis
	touched    touched
	// exported are the names of volumes that it was told of, or will be once they are made, for hub.
	exported atomic.Pointer[map[string]bool]
	sessions sessionRecorder
	applied  acknowledged
	// version that was sent last; each update of a stream has a greater one, so that acknowledgements tell them apart.
	version uint64
	// keptAlive is when the connection was last kept alive.
	keptAlive time.Time
	// unstored says that the store did not take something that the gateway said; probed is when it was asked whether it takes
	// anything again.
	unstored bool
	probed   time.Time
}

// wake has the desired state made anew; it never waits.
func (g *gatewayStream) wake() {
	select {
	case g.woken <- struct{}{}:
	default:
	}
}

// exports says whether a change is of a volume that was, or will be, sent to the gateway.
func (g *gatewayStream) exports(change view.Change) bool {
	known := g.exported.Load()
	return change.Kind == model.KindVolume && known != nil && (*known)[change.Name]
}

func (g *gatewayStream) close() {
	g.service.hub.remove(g)
	close(g.ended) // the stream's own context goes on until this returns
	g.working.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := g.connection.Close(ctx); err != nil {
		g.log.Warn("the end of a stream could not be stored; its lease will end", "problem", err)
	}
}

// serve runs the stream to its end.
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

// listen takes messages until the gateway is silent for too long or gone.
func (g *gatewayStream) listen(ctx context.Context, messages <-chan *pb.ConnectRequest, failed <-chan error) error {
	silence := time.NewTimer(silenceLimit)
	defer silence.Stop()
	for {
		select {
		case message := <-messages:
			for message != nil {
				said, next := together(message, messages)
				if err := g.handleMessage(ctx, message, said); err != nil {
					return err
				}
				message = next
			}
			silence.Reset(silenceLimit) // from now on: while a store that hangs was waited for, nobody listened
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

// together gathers what a gateway says of several volumes, one after the other, so that it is stored at once; next is what came
// after that and is to be taken then, nil: nothing. A volume is in it once: nothing that was said of it is passed over.
func together(first *pb.ConnectRequest, messages <-chan *pb.ConnectRequest) (said []*pb.VolumeObserved, next *pb.ConnectRequest) {
	message := first
	seen := map[string]bool{}
	for {
		volume := message.GetVolumeObserved()
		if volume == nil || seen[volume.GetUid()] || len(said) == incoming {
			if message == first {
				return nil, nil
			}
			return said, message
		}
		seen[volume.GetUid()] = true
		said = append(said, volume)
		select {
		case message = <-messages:
		default:
			return said, nil
		}
	}
}

// send sends the gateway its desired state, each change of it, and the messages that wait in out.
func (g *gatewayStream) send(ctx context.Context) error {
	if !g.welcome {
		welcome := &pb.ConnectResponse_Welcome{Welcome: g.service.welcome(g.number)}
		if err := g.stream.Send(&pb.ConnectResponse{Message: welcome}); err != nil {
			return err
		}
	}
	var pace pace
	rest := func() (<-chan time.Time, error) {
		began := time.Now()
		count, err := g.update()
		return time.After(pace.rest(time.Now(), time.Since(began), len(g.sent), count)), err
	}
	// The first update comes before any job: a gateway refuses a job of a pool that no update has named.
	rested, err := rest()
	if err != nil {
		return err
	}
	var woken chan struct{} // nil while updates rest
	for {
		select {
		case <-woken:
			if rested, err = rest(); err != nil {
				return err
			}
			woken = nil
		case <-rested:
			woken, rested = g.woken, nil
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

// update sends what has changed since the last one, and returns how much that was. A gateway that is no longer in the store is told
// to go.
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

// renew builds the state, and the updates that lead to it from the one that was sent.
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
		// It holds just this already; but even nothing new is news to a gateway that waits for its first update.
		return []*pb.StreamUpdate{{Version: version, Digest: next.Digest()}}
	}
	return desired.Updates(from, next, version)
}

// answer queues a message for the gateway; one that does not read loses its stream rather than our memory.
func (g *gatewayStream) answer(ctx context.Context, message *pb.ConnectResponse) {
	select {
	case g.out <- message:
	case <-ctx.Done():
	case <-g.ended:
	}
}

// watchJobs sends the gateway its jobs, and its sessions' evictions, until the function returned is called.
func (g *gatewayStream) watchJobs(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	g.working.Add(2)
	go func() {
		defer g.working.Done()
		g.again(ctx, "jobs", func(ctx context.Context) error {
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
		g.again(ctx, "evictions", func(ctx context.Context) error {
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

// again keeps something running until the context ends.
func (g *gatewayStream) again(ctx context.Context, what string, run func(context.Context) error) {
	for ctx.Err() == nil {
		err := run(ctx)
		if ctx.Err() != nil {
			return
		}
		g.log.Warn("a watch failed; it begins anew", "of", what, "problem", err)
		select {
		case <-ctx.Done():
		case <-time.After(heartbeatInterval):
		}
	}
}
