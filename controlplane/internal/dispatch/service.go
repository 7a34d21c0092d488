package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Protocol versions of the stream that this program supports.
const (
	minProtocol = 1
	maxProtocol = 1
)

const (
	// helloTimeout bounds the wait for a stream's first message.
	helloTimeout = 10 * time.Second
	// heartbeatInterval is the interval of heartbeats that gateways receive. A lease of the store lasts several of them.
	heartbeatInterval = 500 * time.Millisecond
	// silenceLimit is the time after which a silent stream counts as gone.
	silenceLimit = 3 * time.Second
	// storeTimeout bounds the time in the store for one message of a gateway.
	storeTimeout = 5 * time.Second
)

// Options of the service.
type Options struct {
	Store *store.Store
	View  *view.Cache
	Log   *slog.Logger
	// Caller returns the gateway that a call's certificate names, and whether a certificate was required.
	Caller func(context.Context) (gateway string, asked bool)
	// Replica is the name of this process, ClusterID that of the system.
	Replica, ClusterID string
	OUI                uint32
	// Registry registers the metrics; nil: none.
	Registry prometheus.Registerer
	// Events records the gateways' reports for users; nil: they are dropped.
	Events Events
}

// Service serves GatewayStreamService.
type Service struct {
	pb.UnimplementedGatewayStreamServiceServer
	options      Options
	hub          *hub
	stop         chan struct{}
	metrics      *metrics
	floods       floods
	hostFaultLog hostFaultLog
	liveLoads    liveLoadDemand
}

// New returns the service. Streams receive changes only while Run runs.
func New(options Options) *Service {
	return &Service{options: options, stop: make(chan struct{}), metrics: newMetrics(options.Registry), hostFaultLog: newHostFaultLog(),
		hub: &hub{store: options.Store, view: options.View, log: options.Log, streams: map[*gatewayStream]bool{}}}
}

// Run sends changes to all streams until the context ends. Then it ends all streams.
func (s *Service) Run(ctx context.Context) error {
	defer close(s.stop)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.watchLiveLoadRequests(ctx) })
	group.Go(func() error { return s.hub.run(ctx) })
	return group.Wait()
}

// Connect implements GatewayStreamService.
func (s *Service) Connect(stream pb.GatewayStreamService_ConnectServer) error {
	select {
	case <-s.options.View.Ready():
	case <-s.stop:
		return status.Error(codes.Unavailable, "this replica is stopping: connect to another one")
	case <-time.After(helloTimeout):
		return status.Error(codes.Unavailable, "this replica has not read the store yet: connect to another one")
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
	messages, failed := receive(stream)
	hello, err := s.hello(stream.Context(), messages, failed)
	if err != nil {
		return err
	}
	welcome, err := s.examine(stream, hello, messages, failed)
	if err != nil {
		return err
	}
	g, err := s.admit(stream, hello)
	if err != nil {
		return err
	}
	g.welcome = welcome
	defer g.close()
	s.options.Log.Info("gateway connected", "gateway", g.name, "number", g.number, "incarnation", g.runs.Incarnation,
		"version", hello.GetSoftwareVersion())
	if err = g.serve(messages, failed); status.Code(err) == codes.ResourceExhausted {
		s.metrics.floods.Inc()
		s.floods.note(g.name, time.Now())
	}
	s.options.Log.Info("gateway disconnected", "gateway", g.name, "incarnation", g.runs.Incarnation, "why", err)
	return err
}

// receive passes on a stream's messages until the stream fails, its call ends, or a message exceeds the bounds. It checks
// messages before they are queued, so that the queue is bounded (burstBytes).
func receive(stream pb.GatewayStreamService_ConnectServer) (<-chan *pb.ConnectRequest, <-chan error) {
	messages, failed := make(chan *pb.ConnectRequest, incoming), make(chan error, 1)
	go func() {
		quota := newQuota(time.Now())
		for {
			message, err := stream.Recv()
			if err == nil {
				err = quota.spend(time.Now(), proto.Size(message))
			}
			if err == nil {
				err = within(message)
			}
			if err != nil {
				failed <- err
				return
			}
			select {
			case messages <- message:
			case <-stream.Context().Done():
				failed <- stream.Context().Err()
				return
			}
		}
	}()
	return messages, failed
}

func (s *Service) hello(ctx context.Context, messages <-chan *pb.ConnectRequest, failed <-chan error,
) (*pb.StreamHello, error) {
	timer := time.NewTimer(helloTimeout)
	defer timer.Stop()
	select {
	case message := <-messages:
		hello := message.GetHello()
		if hello == nil {
			return nil, status.Error(codes.InvalidArgument, "hello has to be the first message")
		}
		return hello, s.acceptable(ctx, hello)
	case err := <-failed:
		return nil, err
	case <-timer.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "no hello within %v", helloTimeout)
	case <-s.stop:
		return nil, status.Error(codes.Unavailable, "this replica is stopping: connect to another one")
	}
}

func (s *Service) acceptable(ctx context.Context, hello *pb.StreamHello) error {
	if caller, asked := s.options.Caller(ctx); asked && caller != hello.GetGateway() {
		return status.Errorf(codes.PermissionDenied, "the certificate is gateway %q's, the hello %q's", caller, hello.GetGateway())
	}
	if err := s.floods.refusal(hello.GetGateway(), time.Now()); err != nil {
		return err
	}
	if hello.GetGateway() == "" || hello.GetIncarnation() == "" {
		return status.Error(codes.InvalidArgument, "hello needs the gateway's name and incarnation")
	}
	if hello.GetMinProtocol() > maxProtocol || hello.GetMaxProtocol() < minProtocol {
		return status.Errorf(codes.FailedPrecondition, "the gateway speaks protocol %d to %d, this replica %d to %d: "+
			"upgrade whichever is the older", hello.GetMinProtocol(), hello.GetMaxProtocol(), minProtocol, maxProtocol)
	}
	return nil
}

// admit stores the gateway's connection.
func (s *Service) admit(stream pb.GatewayStreamService_ConnectServer, hello *pb.StreamHello) (*gatewayStream, error) {
	ctx, cancel := context.WithTimeout(stream.Context(), storeTimeout)
	defer cancel()
	connection, err := s.options.Store.ConnectGateway(ctx, hello.GetGateway(), model.GatewayConnection{
		Ref:     model.GatewayRef{Incarnation: hello.GetIncarnation()},
		Replica: s.options.Replica, Node: hello.GetNode(), BootID: hello.GetBootId(), PID: hello.GetPid(),
		PIDStartTime: hello.GetPidStartTime(), Version: hello.GetSoftwareVersion(), Capabilities: hello.GetCapabilities(),
	})
	if err != nil {
		return nil, connectStatus(hello.GetGateway(), err)
	}
	if err := s.catchUp(ctx, hello.GetHeldVersion()); err != nil {
		_ = connection.Close(ctx) // if this fails, the lease expires
		return nil, status.Errorf(codes.Unavailable, "this replica is behind: connect to another one: %v", err)
	}
	if keys, _ := s.hub.forwardingKeys(); keys == nil {
		if err := s.hub.refreshKeys(ctx); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
	}
	g := &gatewayStream{service: s, stream: stream, connection: connection, name: hello.GetGateway(),
		number: connection.Ref.Number,
		runs: desired.Process{Incarnation: hello.GetIncarnation(), RBD: slices.Contains(hello.GetCapabilities(), "rbd"),
			Pairwise: slices.Contains(hello.GetCapabilities(), model.CapabilityPairwiseKeys)},
		buildRequested: make(chan struct{}, 1), out: make(chan *pb.ConnectResponse, outgoing),
		commits: make(chan struct{}, maxCommits), ended: make(chan struct{}), heldDigest: hello.GetHeldDigest(),
		log: s.options.Log.With("gateway", hello.GetGateway())}
	s.hostFaultLog.connected(g.name)
	s.hub.add(g)
	return g, nil
}

// catchUp waits until the view has everything that was stored before the gateway connected, and everything that other replicas
// sent it. An older state would take volumes from the gateway that it owns.
func (s *Service) catchUp(ctx context.Context, held uint64) error {
	revision, err := s.options.Store.Revision(ctx)
	if err != nil {
		return err
	}
	if held > uint64(revision) {
		s.options.Log.Warn("a gateway has a later revision than the store: was the store restored from a backup?",
			"held", held, "stored", revision)
	}
	return s.options.View.WaitFor(ctx, revision)
}

// replacedStatus is the error that makes a replaced process end.
func replacedStatus(gateway string, err error) error {
	return status.Errorf(codes.Aborted, "gateway %s: %v: restart it", gateway, err)
}

func connectStatus(gateway string, err error) error {
	var missing *store.NotFoundError
	var unmet *model.PreconditionError
	switch {
	case errors.As(err, &missing):
		return status.Errorf(codes.FailedPrecondition, "there is no gateway %q: `sluicectl gateway create %s`", gateway, gateway)
	case errors.As(err, &unmet):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, store.ErrReplaced):
		return replacedStatus(gateway, err)
	}
	return status.Error(codes.Unavailable, err.Error())
}
