package controller

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of the waits for the control plane.
const (
	pollFirst = 50 * time.Millisecond
	pollLast  = time.Second
	// waitBound applies if the caller set no time limit.
	waitBound = 2 * time.Minute
)

// wait polls until the condition holds, or the call's time is over. In that case the caller repeats the call, which finds what
// was begun. `is` returns what is missing.
func wait(ctx context.Context, check func(ctx context.Context) (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	for pause := pollFirst; ; pause = min(2*pause, pollLast) {
		missing, err := check(ctx)
		if ctx.Err() == nil && (err != nil || missing == "") {
			return clientError(err)
		}
		select {
		case <-ctx.Done():
			return status.Errorf(codes.DeadlineExceeded, "not done in time, try again: %s", missing)
		case <-time.After(pause):
		}
	}
}
