package initiator

import (
	"context"
	"sync"
	"time"
)

// Path is one portal of a Multipath: a session that is opened again whenever it is lost, and the ALUA state of each LUN through
// it.
type Path struct {
	Portal  string
	config  *Config
	isid    [6]byte
	changed func()

	mu      sync.Mutex
	session *Session
	states  map[uint16]AccessState
	refresh chan struct{}
	// For tests and figures.
	logins int
	losses []LostError
}

const (
	aluaRefresh       = 2 * time.Second // while nothing changes; at once after a report of a change
	aluaTimeout       = 2 * time.Second
	maxRecordedLosses = 1000
)

func newPath(portal string, isid [6]byte, config *Config, changed func()) *Path {
	return &Path{Portal: portal, config: config, isid: isid, changed: changed,
		states: map[uint16]AccessState{}, refresh: make(chan struct{}, 1)}
}

// run keeps the path connected until ctx ends.
func (p *Path) run(ctx context.Context) {
	for ctx.Err() == nil {
		session, err := Login(ctx, Options{Portal: p.Portal, Target: p.config.Target, Initiator: p.config.Initiator,
			ISID: p.isid, CHAP: p.config.CHAP, LoginTimeout: p.config.LoginTimeout, PingAfter: p.config.PingAfter,
			SilenceLimit: p.config.SilenceLimit})
		if err != nil {
			p.config.note("%s: %v", p.Portal, err)
			pause(ctx, p.config.ReconnectDelay)
			continue
		}
		p.serve(ctx, session)
	}
}

func (p *Path) serve(ctx context.Context, session *Session) {
	p.queryAccessStates(ctx, session)
	p.mu.Lock()
	p.session = session
	p.logins++
	p.mu.Unlock()
	p.changed()
	ticker := time.NewTicker(aluaRefresh)
	defer ticker.Stop()
	for live := true; live; {
		select {
		case <-session.Over():
			live = false
		case <-ctx.Done():
			session.LogOut()
		case <-p.refresh:
			p.queryAccessStates(ctx, session)
		case <-ticker.C:
			p.queryAccessStates(ctx, session)
		}
	}
	lost := session.Lost()
	p.config.note("%v", lost)
	p.mu.Lock()
	p.session = nil
	if len(p.losses) < maxRecordedLosses {
		p.losses = append(p.losses, *lost)
	}
	p.mu.Unlock()
	p.changed()
}

// queryAccessStates requests the access state of every LUN through this path. If that fails, the known state stays.
func (p *Path) queryAccessStates(ctx context.Context, session *Session) {
	ctx, cancel := context.WithTimeout(ctx, aluaTimeout)
	defer cancel()
	for _, lun := range p.config.LUNs {
		identity, err := session.Good(ctx, Inquiry(lun, 0x83))
		if err != nil {
			return
		}
		groups, err := session.Good(ctx, ReportTargetPortGroups(lun))
		if err != nil {
			return
		}
		own, err := parsePortGroup(identity)
		if err != nil {
			p.config.note("%s, LUN %d: %v", p.Portal, lun, err)
			return
		}
		states, err := ParsePortGroups(groups)
		if err != nil {
			p.config.note("%s, LUN %d: %v", p.Portal, lun, err)
			return
		}
		if state, known := states[own]; known {
			p.set(lun, state)
		}
	}
}

func (p *Path) set(lun uint16, state AccessState) {
	p.mu.Lock()
	before, known := p.states[lun]
	p.states[lun] = state
	p.mu.Unlock()
	if !known || before != state {
		p.config.note("%s, LUN %d: %v", p.Portal, lun, state)
		p.changed()
	}
}

// ask makes the path learn soon.
func (p *Path) ask() {
	select {
	case p.refresh <- struct{}{}:
	default:
	}
}

// usable returns the session, if commands may use it, and the state of the LUN.
func (p *Path) usable(lun uint16) (*Session, AccessState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == nil || p.session.Lost() != nil || p.session.Leaving() {
		return nil, Unavailable
	}
	state, known := p.states[lun]
	if !known {
		state = NonOptimized
	}
	return p.session, state
}

// Session returns the present session; nil while there is none.
func (p *Path) Session() *Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// Losses returns the sessions that this path has lost so far.
func (p *Path) Losses() []LostError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]LostError(nil), p.losses...)
}

const unitAttentionsPassed = 8

// Good runs a command until it is answered with GOOD; it ignores unit attentions.
func (s *Session) Good(ctx context.Context, command Command) ([]byte, error) {
	for range unitAttentionsPassed {
		response, err := s.Do(ctx, command)
		if err != nil {
			return nil, err
		}
		if response.Status == StatusGood {
			return response.Data, nil
		}
		if response.Status != StatusCheckCondition || response.Sense.Key != SenseUnitAttention {
			return nil, &AnswerError{s.options.Portal, response}
		}
	}
	return nil, &AnswerError{s.options.Portal, Response{Status: StatusCheckCondition, Sense: Sense{Key: SenseUnitAttention}}}
}

// AnswerError is an answer other than GOOD.
type AnswerError struct {
	Portal   string
	Response Response
}

func (e *AnswerError) Error() string { return e.Portal + ": " + e.Response.String() }

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
