package node

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// callBound is how long a call works at most; kubelet waits two minutes and comes again.
const callBound = 110 * time.Second

// work claims a volume, bounds the call, and reads what is staged of the volume: nil where nothing is. The function it
// returns ends both.
func (s *Service) work(ctx context.Context, volume string) (context.Context, *record, func(), error) {
	done, err := s.busy.Begin(volume)
	if err != nil {
		return ctx, nil, nil, err
	}
	staged, err := s.state.get(volume)
	if err != nil {
		done()
		return ctx, nil, nil, status.Errorf(codes.Internal, "state: %s", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callBound)
	return ctx, staged, func() { cancel(); done() }, nil
}
