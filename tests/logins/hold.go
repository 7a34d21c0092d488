package logins

import (
	"context"
	"errors"
	"time"

	"sluice.dev/sluice/tests/netns"
)

// InForce bounds the time until new credentials reach a gateway. A gateway without a control plane applies its saved state after
// 5 s.
const InForce = 15 * time.Second

// Hold waits until a portal admits all hosts with their right credentials, then requires every answer, in sessions with the
// target and in discovery sessions.
func Hold(ctx context.Context, portal, target string, all ...Credentials) error {
	within, cancel := context.WithTimeout(ctx, InForce)
	defer cancel()
	// Credentials that are not in force by then are reported below, answer by answer.
	_ = netns.Until(within, func() error {
		var problems []error
		for _, c := range all {
			for _, attempt := range c.Attempts() {
				if attempt.Admitted {
					problems = append(problems, attempt.Login(within, portal, target))
				}
			}
		}
		return errors.Join(problems...)
	})
	return errors.Join(Check(ctx, Attempt.Login, portal, target, all...), Check(ctx, Attempt.Discover, portal, target, all...))
}
