package node

import (
	"context"
	"fmt"
	"io"
)

// step is a part of a set-up. It makes only what is missing, so it can run again after an interruption at any point.
type step struct {
	what string
	run  func(context.Context) (changed bool, err error)
	// waits: it changes nothing itself.
	waits bool
}

// runSteps runs the steps in their order, and prints each one before it begins.
func runSteps(ctx context.Context, to io.Writer, steps []step) (changed bool, err error) {
	for _, one := range steps {
		_, _ = fmt.Fprintln(to, one.what)
		did, err := one.run(ctx)
		if err != nil {
			return changed, fmt.Errorf("%s: %w", one.what, err)
		}
		changed = changed || did
		if !did && !one.waits {
			_, _ = fmt.Fprintln(to, "  unchanged")
		}
	}
	return changed, nil
}
