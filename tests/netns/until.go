package netns

import (
	"context"
	"fmt"
	"net"
	"time"
)

const tryEvery = 20 * time.Millisecond

// Until tries until the condition holds. If ctx ends first, it returns the condition's last error.
func Until(ctx context.Context, condition func() error) error {
	ticker := time.NewTicker(tryEvery)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Wait waits for a time, or until ctx ends, so that faults last as long as planned.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// UntilListens waits until the process listens at an address, or has ended.
func UntilListens(ctx context.Context, p *Process, address string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := Until(ctx, func() error {
		if !p.Running() {
			cancel(fmt.Errorf("%s has ended", p.Name))
		}
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close() // only the connection itself matters
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s does not listen at %s: %w; its log ends:\n%s", p.Name, address, err, p.LogTail(20))
	}
	return nil
}
