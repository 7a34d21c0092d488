package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// Reasons why a session is asked to log out.
const (
	EvictLimit     = "limit"
	EvictRebalance = "rebalance"
)

// sessionID identifies a session among the present ones.
type sessionID struct{ gateway, tsih uint32 }

// knownSession is a session as the leader knows it.
type knownSession struct {
	*model.Session
	// firstReported is when the leader first received a report of it, and asked when it was asked to log out, by the leader's
	// clock; zero: not.
	firstReported, asked time.Time
}

// pair is an initiator and a target, by their iSCSI names.
type pair struct{ initiator, target string }

// moves counts the sessions that were asked to move, the last one at a time by the leader's clock. A host that returns to its
// previous portal is asked after increasing pauses.
type moves struct {
	count int
	at    time.Time
}

// due returns when the next session may be asked.
func (m moves) due() time.Time {
	pause := RebalancePause
	for range m.count - 1 {
		pause = min(2*pause, MaxRebalancePause)
	}
	return m.at.Add(pause)
}

// sessions are the sessions of all gateways, from their reports.
type sessions struct {
	hosts   map[string]map[sessionID]*knownSession // by uid
	targets map[string]map[sessionID]*knownSession // by IQN
	all     map[sessionID]*knownSession
	// moved has the requests to move for each pair. recent has the times of all requests within RebalanceWindow.
	moved  map[pair]moves
	recent []time.Time
}

func newSessions() sessions {
	return sessions{hosts: map[string]map[sessionID]*knownSession{}, targets: map[string]map[sessionID]*knownSession{},
		all: map[sessionID]*knownSession{}, moved: map[pair]moves{}}
}

// ResetSessions removes all sessions; the present ones follow.
func (v *LeaderView) ResetSessions() {
	moved, recent := v.sessions.moved, v.sessions.recent
	v.sessions = newSessions()
	v.sessions.moved, v.sessions.recent = moved, recent
}

// PutSession adds or replaces a session, reported at a time by the leader's clock. It reports whether more than its counters
// changed.
func (v *LeaderView) PutSession(s *model.Session, now time.Time) bool {
	id := sessionID{s.GatewayNumber, s.TSIH}
	entry := &knownSession{Session: s, firstReported: now}
	before := v.sessions.all[id]
	if before != nil {
		v.EndSession(before.Session)
		if s.Same(before.Session) {
			entry.firstReported, entry.asked = before.firstReported, before.asked
		}
	}
	v.sessions.all[id] = entry
	put(v.sessions.hosts, s.HostUID, id, entry)
	put(v.sessions.targets, s.TargetIQN, id, entry)
	return before == nil || !s.Same(before.Session) || s.HostUID != before.HostUID
}

// EndSession removes a session.
func (v *LeaderView) EndSession(s *model.Session) {
	id := sessionID{s.GatewayNumber, s.TSIH}
	known := v.sessions.all[id]
	if known == nil {
		return
	}
	delete(v.sessions.all, id)
	removeFrom(v.sessions.hosts, known.HostUID, id)
	removeFrom(v.sessions.targets, known.TargetIQN, id)
}

func removeFrom[K, L comparable, V any](all map[K]map[L]V, key K, inner L) {
	delete(all[key], inner)
	if len(all[key]) == 0 {
		delete(all, key)
	}
}

// DecideHost asks sessions beyond the host's limit to log out.
func (v *LeaderView) DecideHost(name string, now time.Time) Decision {
	var decision Decision
	host := v.Hosts[name]
	if host == nil {
		return decision
	}
	var living []*knownSession
	for _, s := range v.sessions.hosts[host.Meta.UID] {
		g := v.GatewayByNumber(s.GatewayNumber)
		if _, present := v.connected(s.GatewayNumber); present || g != nil && v.Standing(g.Ref()) != Gone {
			living = append(living, s) // the sessions of a gateway that is gone have ended
		}
	}
	limit := int(host.Spec.MaxSessions)
	surplus, wait := surplusSessions(living, limit, now)
	decision.wait(wait)
	for _, s := range surplus {
		a := v.evict(host, s, EvictLimit)
		a.Event = &Event{true, "SessionLimit", fmt.Sprintf("host %s has %d sessions over all gateways and may have %d: one of the "+
			"newest, of initiator %s to %s at gateway %s, is asked to log out", name, len(living), limit, s.Initiator,
			s.TargetIQN, s.Gateway)}
		decision.add(a)
	}
	return decision
}

// surplusSessions returns the newest sessions beyond a limit that must now be asked to log out, and when others may have to. The
// oldest sessions stay. A session that was already asked is not asked again.
func surplusSessions(all []*knownSession, limit int, now time.Time) (surplus []*knownSession, wait time.Duration) {
	slices.SortFunc(all, func(a, b *knownSession) int {
		return cmp.Or(a.LoginTime.Compare(b.LoginTime), cmp.Compare(a.GatewayNumber, b.GatewayNumber), cmp.Compare(a.TSIH, b.TSIH))
	})
	for _, s := range all[min(limit, len(all)):] {
		left := SessionGrace - now.Sub(s.firstReported)
		switch {
		case !s.asked.IsZero():
		case left <= 0:
			surplus = append(surplus, s)
		case wait == 0 || left < wait:
			wait = left
		}
	}
	return surplus, wait
}

// evict asks a session to log out. Its events are about the object.
func (v *LeaderView) evict(object model.Object, s *knownSession, reason string) *Evict {
	a := &Evict{Subject: about(object), Session: s.Session, Reason: reason}
	a.Done = func(view *LeaderView, now time.Time) {
		known := view.sessions.all[sessionID{s.GatewayNumber, s.TSIH}]
		if known == nil || !known.Same(s.Session) {
			return
		}
		known.asked = now
		if reason == EvictRebalance {
			of := pair{s.Initiator, s.TargetIQN}
			view.sessions.moved[of] = moves{view.sessions.moved[of].count + 1, now}
			view.sessions.recent = append(view.sessions.recent, now)
		}
	}
	return a
}

// waitsForSessions returns the gateways that still have sessions with a target, each for as long as it may wait for them to move.
func (v *LeaderView) waitsForSessions(t *model.Target, now time.Time, decision *Decision) []uint32 {
	var waits []uint32
	for _, s := range v.sessions.targets[t.Spec.IQN] {
		number := s.GatewayNumber
		_, present := v.connected(number)
		if !present || slices.Contains(waits, number) || !slices.Contains(t.Status.PathSet, number) {
			continue
		}
		left := LeaveTimeout
		if stored, leaves := t.Status.Leaving[number]; leaves {
			// The wait uses this leader's clock. The stored time is another clock's, and only distinguishes one leaving from the
			// next.
			left -= now.Sub(v.since(leaving(t.Meta.Name, number), uint64(stored.UnixNano()), now))
			decision.wait(left)
		}
		if left > 0 {
			waits = append(waits, number)
		}
	}
	return waits
}

// leaving returns the key under which a gateway's leaving of a target's path set is sighted. Object names contain no slash.
func leaving(target string, gateway uint32) Key {
	return Key{model.KindTarget, fmt.Sprintf("%s/%d", target, gateway)}
}

// rebalance asks sessions at portals that their host is no longer shown to log out, so that the host logs in at a shown portal.
// It asks one session of an initiator at a time, and never the last one (R9).
func (v *LeaderView) rebalance(t *model.Target, now time.Time, decision *Decision) {
	all := v.sessions.targets[t.Spec.IQN]
	if len(all) == 0 {
		return
	}
	shown := v.Access(t)
	var here []placed
	for _, s := range all {
		host := v.HostByUID(s.HostUID)
		_, present := v.connected(s.GatewayNumber)
		if host == nil || !present || !slices.Contains(t.Status.PathSet, s.GatewayNumber) {
			continue // it is gone, or its gateway has itself asked it to log out
		}
		listed := slices.ContainsFunc(shown[host.Meta.Name], func(p placement.PortalRef) bool {
			return p.Gateway == s.GatewayNumber && p.PortalGroupTag == s.PortalGroupTag
		})
		here = append(here, placed{s, listed || len(shown[host.Meta.Name]) == 0})
	}
	budget := v.rebalanceBudget(now, decision)
	for _, s := range misplaced(here, v.sessions.moved, now, decision) {
		if budget == 0 {
			decision.wait(RebalanceWindow)
			return
		}
		budget--
		a := v.evict(t, s, EvictRebalance)
		a.Event = &Event{false, "SessionRebalanced", fmt.Sprintf("the session of initiator %s at gateway %s, portal group %d, is "+
			"asked to log out: the host is shown other portals, and has a session at one of them", s.Initiator, s.Gateway,
			s.PortalGroupTag)}
		decision.add(a)
	}
}

// rebalanceBudget returns how many sessions may be asked to move now.
func (v *LeaderView) rebalanceBudget(now time.Time, decision *Decision) int {
	v.sessions.recent = slices.DeleteFunc(v.sessions.recent, func(at time.Time) bool { return now.Sub(at) >= RebalanceWindow })
	for of, m := range v.sessions.moved {
		if now.Sub(m.at) >= 2*MaxRebalancePause {
			delete(v.sessions.moved, of)
		}
	}
	return max(0, MaxRebalanced-len(v.sessions.recent))
}

// placed is a session of a target, and whether its portal is shown to its host.
type placed struct {
	*knownSession
	listed bool
}

// misplaced returns the sessions to be asked now: for each initiator one session that is at no listed portal. Another session
// must be at a listed portal and not about to leave, none may be moving, and the previous one must have had time to return.
func misplaced(all []placed, moved map[pair]moves, now time.Time, decision *Decision) []*knownSession {
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.Initiator, b.Initiator), cmp.Compare(a.GatewayNumber, b.GatewayNumber), cmp.Compare(a.TSIH, b.TSIH))
	})
	var ask []*knownSession
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].Initiator == all[from].Initiator {
			to++
		}
		ofOne := all[from:to]
		from = to
		leaves := slices.IndexFunc(ofOne, func(p placed) bool { return !p.listed })
		stays := slices.ContainsFunc(ofOne, func(p placed) bool { return p.listed && p.asked.IsZero() })
		asked := slices.ContainsFunc(ofOne, func(p placed) bool { return !p.listed && !p.asked.IsZero() })
		if leaves < 0 || !stays || asked {
			continue
		}
		if before, known := moved[pair{ofOne[leaves].Initiator, ofOne[leaves].TargetIQN}]; known && now.Before(before.due()) {
			decision.wait(before.due().Sub(now))
			continue
		}
		ask = append(ask, ofOne[leaves].knownSession)
	}
	return ask
}
