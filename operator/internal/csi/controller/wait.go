package controller

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of waiting for the control plane to have done something.
const (
	askAgainFirst = 50 * time.Millisecond
	askAgainLast  = time.Second
	// waitBound holds where the caller set no time of its own.
	waitBound = 2 * time.Minute
)

// wait asks until it is so, or the call's time is over: then the caller comes again, and finds what was begun. `is` says what
// is missing.
func wait(ctx context.Context, is func(ctx context.Context) (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitBound)
	defer cancel()
	for pause := askAgainFirst; ; pause = min(2*pause, askAgainLast) {
		missing, err := is(ctx)
		if ctx.Err() == nil && (err != nil || missing == "") {
			return told(err)
		}
		select {
		case <-ctx.Done():
			return status.Errorf(codes.DeadlineExceeded, "not done in time, try again: %s", missing)
		case <-time.After(pause):
		}
	}
}
