package dispatch

import (
	"context"
	"testing"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// endless is a stream whose call lasts as long as its handler.
type endless struct {
	pb.GatewayStreamService_ConnectServer
}

func (endless) Context() context.Context { return context.Background() }

// The handler of a stream waits for requests in progress. If these waited for the stream, the gateway would hang.
func TestAnAnswerToAnEndedStreamDoesNotBlock(t *testing.T) {
	g := &gatewayStream{stream: endless{}, out: make(chan *pb.ConnectResponse), commits: make(chan struct{}, 1),
		ended: make(chan struct{})}
	g.apart(func(context.Context) { g.answer(g.stream.Context(), &pb.ConnectResponse{}) })
	close(g.ended)
	g.working.Wait()
}
