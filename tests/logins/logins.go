// Package logins makes login attempts on real gateways and compares each answer with the status of RFC 7143 §11.13.5. A
// test applies the same attempts to hosts that the CLI, a custom resource and the CSI driver made, through every kind of portal.
package logins

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/tests/initiator"
)

// AuthenticationFailure is the login status of a refused CHAP exchange (RFC 7143 §11.13.5).
const AuthenticationFailure = 0x0201

// Credentials are those that one initiator of a host must present.
type Credentials struct {
	Initiator string
	// User is the CHAP_N in force, with defaults resolved; empty: the host authenticates by its name alone.
	User, Secret string
	// MutualUser is the CHAP_N by which the target authenticates itself; empty: the host has no mutual CHAP.
	MutualUser, MutualSecret string
	// Former are names and secrets that were once in force and must be refused.
	Former []initiator.CHAP
}

// Attempt is one login, and whether the gateway must admit it.
type Attempt struct {
	Name      string
	Initiator string
	CHAP      *initiator.CHAP
	Admitted  bool
}

// Attempts of an initiator: each wrong one that differs in one respect, then each right one.
func (c Credentials) Attempts() []Attempt {
	if c.User == "" {
		return []Attempt{{"a host without CHAP", c.Initiator, nil, true}}
	}
	right := initiator.CHAP{User: c.User, Secret: c.Secret}
	mutual := initiator.CHAP{User: c.User, Secret: c.Secret, MutualUser: c.MutualUser, MutualSecret: c.MutualSecret}
	if c.MutualUser == "" {
		mutual.MutualSecret = "a secret that no target has"
	}
	all := []Attempt{
		{"no CHAP", c.Initiator, nil, false},
		{"a wrong name", c.Initiator, &initiator.CHAP{User: c.User + "x", Secret: c.Secret}, false},
		{"an empty name", c.Initiator, &initiator.CHAP{Secret: c.Secret}, false},
		{"a wrong secret", c.Initiator, &initiator.CHAP{User: c.User, Secret: c.Secret + "x"}, false},
		{"an empty secret", c.Initiator, &initiator.CHAP{User: c.User}, false},
	}
	for i, former := range c.Former {
		all = append(all, Attempt{fmt.Sprintf("former credentials %d", i), c.Initiator, &former, false})
	}
	return append(all, Attempt{"the right secret", c.Initiator, &right, true},
		Attempt{"mutual CHAP", c.Initiator, &mutual, c.MutualUser != ""})
}

// Login makes an attempt on a portal, in a normal session with the target. The error describes the difference between the answer
// and the required one.
func (a Attempt) Login(ctx context.Context, portal, target string) error {
	session, err := initiator.Login(ctx, a.options(portal, target))
	if err == nil {
		session.Close()
	}
	return a.compareAnswer(portal, err)
}

// Discover makes an attempt on a portal, in a discovery session. Only an admitted initiator may see the target.
func (a Attempt) Discover(ctx context.Context, portal, target string) error {
	shown, err := initiator.Discover(ctx, a.options(portal, ""))
	if err == nil && a.Admitted {
		for _, s := range shown {
			if s.Target == target {
				return nil
			}
		}
		return fmt.Errorf("%s, discovery by %s with %s: %s is not among %v", portal, a.Initiator, a.Name, target, shown)
	}
	return a.compareAnswer(portal+", discovery", err)
}

// Rejected makes an attempt on a port that admits no host, such as the forwarding port.
func (a Attempt) Rejected(ctx context.Context, portal, target string) error {
	session, err := initiator.Login(ctx, a.options(portal, target))
	var refused *initiator.LoginError
	if err == nil {
		session.Close()
	}
	if errors.As(err, &refused) {
		return nil
	}
	return fmt.Errorf("%s: a login of host %s with %s: %w", portal, a.Initiator, a.Name, err)
}

func (a Attempt) options(portal, target string) initiator.Options {
	return initiator.Options{Portal: portal, Target: target, Initiator: a.Initiator, CHAP: a.CHAP, ISID: [6]byte{0x80, 0, 0, 0x77}}
}

func (a Attempt) compareAnswer(where string, err error) error {
	var refused *initiator.LoginError
	switch {
	case a.Admitted && err == nil:
		return nil
	case a.Admitted:
		return fmt.Errorf("%s: %s with %s is refused: %w", where, a.Initiator, a.Name, err)
	case err == nil:
		return fmt.Errorf("%s: %s with %s is admitted", where, a.Initiator, a.Name)
	case errors.As(err, &refused) && refused.Status == AuthenticationFailure:
		return nil
	}
	return fmt.Errorf("%s: %s with %s gets no status %04x: %w", where, a.Initiator, a.Name, AuthenticationFailure, err)
}

// Check makes all attempts of all credentials on a portal by `how`, and joins the differences. Attempts that must be admitted
// come first, one by one. The others are concurrent, because a gateway delays the answer to each failure and evaluates only a few
// of them at a time.
func Check(ctx context.Context, how func(Attempt, context.Context, string, string) error, portal, target string, all ...Credentials) error {
	var problems []error
	var wrong []Attempt
	for _, credentials := range all {
		for _, attempt := range credentials.Attempts() {
			if attempt.Admitted {
				problems = append(problems, how(attempt, ctx, portal, target))
			} else {
				wrong = append(wrong, attempt)
			}
		}
	}
	answers := make(chan error, len(wrong))
	for _, attempt := range wrong {
		go func() { answers <- how(attempt, ctx, portal, target) }()
	}
	for range wrong {
		problems = append(problems, <-answers)
	}
	return errors.Join(problems...)
}
