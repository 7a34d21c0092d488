package dispatch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// gateway is the other end of a stream.
type gateway struct {
	t      *testing.T
	stream pb.GatewayStreamService_ConnectClient
	mutex  sync.Mutex // of sending
	// passed are messages that next received and has not returned yet, in their order. After the first update, updates,
	// jobs and evictions have no order among themselves, so a test that waits for one of them must not lose another.
	passed []*pb.ConnectResponse
}

func (r *replica) connect(hello *pb.StreamHello) *gateway {
	r.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	r.t.Cleanup(stop)
	stream, err := r.client.Connect(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	g := &gateway{t: r.t, stream: stream}
	g.send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Hello{Hello: hello}})
	go g.beat(ctx)
	return g
}

// beat keeps the connection alive regardless of the test's speed.
func (g *gateway) beat(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		g.mutex.Lock()
		err := g.stream.Send(&pb.ConnectRequest{Message: &pb.ConnectRequest_Heartbeat{Heartbeat: &pb.StreamHeartbeat{}}})
		g.mutex.Unlock()
		if err != nil {
			return // it has ended, and a test that waits for its messages fails
		}
	}
}

func hello(incarnation string) *pb.StreamHello {
	return &pb.StreamHello{Gateway: "gw-1", Incarnation: incarnation, MinProtocol: 1, MaxProtocol: 1}
}

func (g *gateway) send(message *pb.ConnectRequest) {
	g.t.Helper()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if err := g.stream.Send(message); err != nil {
		g.t.Fatal(err)
	}
}

// next returns the earliest message for which wanted is true and that it has not returned yet. Messages before it stay for later
// calls.
func (g *gateway) next(wanted func(*pb.ConnectResponse) bool) *pb.ConnectResponse {
	g.t.Helper()
	if i := slices.IndexFunc(g.passed, wanted); i >= 0 {
		message := g.passed[i]
		g.passed = slices.Delete(g.passed, i, i+1)
		return message
	}
	for {
		message, err := g.stream.Recv()
		if err != nil {
			g.t.Fatalf("the stream ended: %v", err)
		}
		if wanted(message) {
			return message
		}
		g.passed = append(g.passed, message)
	}
}

func (g *gateway) update() *pb.StreamUpdate {
	g.t.Helper()
	return g.next(func(m *pb.ConnectResponse) bool { return m.GetUpdate() != nil }).GetUpdate()
}

// ends returns the code with which the stream ended.
func (g *gateway) ends() codes.Code {
	for {
		if _, err := g.stream.Recv(); err != nil {
			return status.Code(err)
		}
	}
}

// bounded limits a wait for a message that never comes.
func bounded(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(stop)
	return ctx
}

func find(update *pb.StreamUpdate, uid string) *pb.DesiredVolume {
	for _, object := range update.GetPut() {
		if v := object.GetVolume(); v.GetUid() == uid {
			return v
		}
	}
	return nil
}
