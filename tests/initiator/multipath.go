package initiator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"
)

// Config of a Multipath. Portals, Target, Initiator and LUNs are required.
type Config struct {
	Portals   []string
	Target    string
	Initiator string
	LUNs      []uint16
	CHAP      *CHAP
	// As in Options.
	LoginTimeout, PingAfter, SilenceLimit time.Duration
	// ResetWait is the time for which a write that was in progress on a connection that was reset or closed waits before it goes
	// to another path. A command that was read from that connection may still be on its way from a forwarder to the owner. The
	// owner refuses it once its token is limits::kTokenLife (0.5 s) old. So a host that waits for this time is not overtaken by
	// its own original (DESIGN R6). 0: one token's life.
	//
	// A forged RST leaves the gateway with data that it has not read yet, for up to limits::kStallLimit: tests that forge RSTs
	// wait for limits::kHostChangesPath (1 s). Reads do not wait, whatever happens to the original.
	ResetWait time.Duration
	// RetryDelay is the pause between attempts of a command that was answered with BUSY or 02/04/0A. 0: 50 ms.
	RetryDelay time.Duration
	// ReconnectDelay is the pause between failed logins. 0: 100 ms.
	ReconnectDelay time.Duration
	// CommandTimeout is the time for which a command may be unanswered on a living session. Then the session is dropped, because
	// an abort would also leave the command's result unknown. 0: 10 s.
	CommandTimeout time.Duration
	// AnyPath is the share of commands, 0…1, that use any path that is up, regardless of ALUA.
	AnyPath float64
	// Note is called for events, if set.
	Note func(format string, arguments ...any)
}

// TokenLife is limits::kTokenLife.
const TokenLife = 500 * time.Millisecond

func (c *Config) complete() {
	defaultTo(&c.SilenceLimit, 5*time.Second)
	defaultTo(&c.ResetWait, TokenLife)
	defaultTo(&c.RetryDelay, 50*time.Millisecond)
	defaultTo(&c.ReconnectDelay, 100*time.Millisecond)
	defaultTo(&c.CommandTimeout, 10*time.Second)
}

func (c *Config) note(format string, arguments ...any) {
	if c.Note != nil {
		c.Note(format, arguments...)
	}
}

// Effect is the possible effect of an attempt on the medium.
type Effect int

// Effects.
const (
	EffectNone  Effect = iota // certainly none
	EffectMaybe               // it may have been executed, or not
	EffectDone                // it was executed and answered
)

// Attempt is one transmission of a command over one path.
type Attempt struct {
	Portal string
	Sent   time.Time
	Ended  time.Time
	Effect Effect
	// Bounded: an effect, if any, preceded Ended. Without it, the effect may occur within the bounds of delays.
	Bounded bool
	Why     string
}

// Outcome of an operation.
type Outcome int

// Outcomes.
const (
	OK      Outcome = iota // answered; Response has the answer
	Failed                 // certainly not executed
	Unknown                // may have been executed, or may yet be
)

func (o Outcome) String() string { return [...]string{"ok", "failed", "unknown"}[o] }

// Result of an operation, with all its attempts except those that were certainly not executed.
type Result struct {
	Outcome  Outcome
	Response Response
	Attempts []Attempt
	// Retries is the number of attempts except the last.
	Retries int
	Err     error
}

// Multipath combines paths to the same LUNs.
type Multipath struct {
	config Config
	Paths  []*Path
	stop   context.CancelFunc
	runs   sync.WaitGroup

	mu     sync.Mutex
	change chan struct{} // closed at each change of a path
}

// Open starts to log in on all portals. Close ends it.
func Open(config Config) *Multipath {
	config.complete()
	ctx, stop := context.WithCancel(context.Background())
	m := &Multipath{config: config, stop: stop, change: make(chan struct{})}
	isid := [6]byte{0x80}
	_, _ = rand.Read(isid[1:4]) // never fails
	for i, portal := range config.Portals {
		isid[5] = byte(i)
		m.Paths = append(m.Paths, newPath(portal, isid, &m.config, m.changed))
	}
	for _, path := range m.Paths {
		m.runs.Go(func() { path.run(ctx) })
	}
	return m
}

// Close logs out of all portals.
func (m *Multipath) Close() {
	m.stop()
	m.runs.Wait()
}

func (m *Multipath) changed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.change)
	m.change = make(chan struct{})
}

func (m *Multipath) changes() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.change
}

// WaitPaths returns once this number of paths are up for every LUN, and not Unavailable or Transitioning.
func (m *Multipath) WaitPaths(ctx context.Context, paths int) error {
	for {
		changes, least := m.changes(), len(m.Paths)
		for _, lun := range m.config.LUNs {
			up := 0
			for _, path := range m.Paths {
				if session, state := path.usable(lun); session != nil && state <= NonOptimized {
					up++
				}
			}
			least = min(least, up)
		}
		if least >= paths {
			return nil
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d paths are up: %w", least, paths, ctx.Err())
		}
	}
}

// pick selects one of the paths that are up, with the best state; sometimes any path.
func (m *Multipath) pick(lun uint16, not *Path) (*Path, *Session) {
	type candidate struct {
		path    *Path
		session *Session
	}
	var best, all []candidate
	bestRank := 100
	for _, path := range m.Paths {
		session, state := path.usable(lun)
		if session == nil {
			continue
		}
		rank := map[AccessState]int{Optimized: 0, NonOptimized: 1, Transitioning: 2}[state]
		if state == Unavailable {
			rank = 3
		}
		if path == not {
			rank += 10 // only if there is no other
		}
		c := candidate{path, session}
		all = append(all, c)
		if rank < bestRank {
			best, bestRank = nil, rank
		}
		if rank == bestRank {
			best = append(best, c)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if not == nil && mathrand.Float64() < m.config.AnyPath {
		best = all
	}
	chosen := best[mathrand.IntN(len(best))]
	return chosen.path, chosen.session
}

// Run executes a command, on any path, and repeats it as often as necessary until ctx ends.
func (m *Multipath) Run(ctx context.Context, command Command) Result {
	result := Result{Outcome: Failed}
	var avoid *Path
	for {
		changes := m.changes()
		path, session := m.pick(command.LUN, avoid)
		avoid = nil
		if session == nil {
			select {
			case <-changes:
				continue
			case <-ctx.Done():
				result.Err = errors.Join(result.Err, errors.New("no path is up"), ctx.Err())
				return result
			}
		}
		verdict := m.try(ctx, path, session, command, &result)
		if verdict.over {
			return result
		}
		if verdict.otherPath {
			avoid = path
		}
		pause(ctx, verdict.wait)
		if ctx.Err() != nil {
			result.Err = errors.Join(result.Err, ctx.Err())
			return result
		}
		result.Retries++
	}
}

type verdict struct {
	over      bool
	otherPath bool
	wait      time.Duration
}

func (m *Multipath) try(ctx context.Context, path *Path, session *Session, command Command, result *Result) verdict {
	limited, cancel := context.WithTimeout(ctx, m.config.CommandTimeout)
	defer cancel()
	attempt := Attempt{Portal: path.Portal, Sent: time.Now()}
	response, err := session.Do(limited, command)
	attempt.Ended = time.Now()
	if err != nil {
		return m.lost(session, command, attempt, err, result)
	}
	result.Response, result.Err = response, nil
	v := m.answered(path, command, &attempt, response)
	switch {
	case v.over:
		if attempt.Effect == EffectDone {
			result.Outcome = OK
		} else if attempt.Effect == EffectMaybe {
			result.Outcome = Unknown
		}
	case attempt.Effect == EffectMaybe:
		result.Outcome = Unknown
	}
	if attempt.Effect != EffectNone {
		result.Attempts = append(result.Attempts, attempt)
	}
	if attempt.Effect != EffectDone {
		result.Err = &AnswerError{path.Portal, response}
	}
	return v
}

// lost evaluates a command without an answer.
func (m *Multipath) lost(session *Session, command Command, attempt Attempt, err error, result *Result) verdict {
	result.Err = err
	var lost *LostError
	if !errors.As(err, &lost) || !lost.Sent {
		return verdict{}
	}
	if lost.Reason == LostAbandoned {
		session.Reset()
	}
	if !command.Writes {
		return verdict{}
	}
	attempt.Effect, attempt.Why = EffectMaybe, lost.Reason.String()
	result.Attempts = append(result.Attempts, attempt)
	result.Outcome = Unknown
	switch lost.Reason {
	case LostSilent:
		return verdict{} // it has waited long enough
	case LostReset, LostClosed, LostLogout, LostAbandoned:
		return verdict{wait: time.Until(lost.At.Add(m.config.ResetWait))}
	}
	return verdict{wait: time.Until(lost.Heard.Add(m.config.SilenceLimit))}
}

// answered evaluates an answer, and states the effect on the medium.
func (m *Multipath) answered(path *Path, command Command, attempt *Attempt, response Response) verdict {
	attempt.Bounded = true
	again := verdict{wait: m.config.RetryDelay}
	switch response.Status {
	case StatusGood:
		attempt.Effect = EffectDone
		return verdict{over: true}
	case StatusBusy, StatusTaskSetFull:
		return again
	case StatusTaskAborted: // another host's reset; its progress is unknown
		attempt.Why = "task aborted"
		if command.Writes {
			attempt.Effect = EffectMaybe
		}
		return again
	case StatusCheckCondition:
	default:
		return verdict{over: true}
	}
	attempt.Why = response.Sense.String()
	switch sense := response.Sense; {
	case sense.Key == SenseUnitAttention:
		if sense.Code == 0x2a && sense.Qualifier == 0x06 { // asymmetric access state changed
			path.ask()
		}
		return verdict{}
	case sense == Sense{SenseNotReady, 0x04, 0x0a}:
		path.set(command.LUN, Transitioning)
		path.ask()
		if command.Writes && !command.Exact {
			attempt.Effect = EffectMaybe
		}
		again.otherPath = true
		return again
	case sense == Sense{SenseNotReady, 0x04, 0x0c}:
		path.set(command.LUN, Unavailable)
		path.ask()
		again.otherPath = true
		return again
	case sense.Key == SenseMiscompare:
		attempt.Effect = EffectDone
		return verdict{over: true}
	case sense.Key == SenseIllegalRequest:
		return verdict{over: true}
	}
	if command.Writes { // medium error, hardware error, aborted: its progress is unknown
		attempt.Effect = EffectMaybe
	}
	return verdict{over: response.Sense.Key != SenseAborted, wait: m.config.RetryDelay}
}
