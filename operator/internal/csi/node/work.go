package node

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// callBound bounds the duration of a call. kubelet waits two minutes and repeats the call.
const callBound = 110 * time.Second

// work claims a volume, bounds the call, and reads the volume's record: nil if there is none. The returned function ends the
// claim and the bound.
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
