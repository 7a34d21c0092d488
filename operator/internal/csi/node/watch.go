package node

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Bounds of the search for new portals.
const (
	// A target is checked every minute to minute and a half, at random, so that nodes that started together do not ask together.
	checkInterval = time.Minute
	checkJitter   = 30 * time.Second
	// minCheckInterval is the minimum time between two checks of a target, regardless of the number of calls that ask for one.
	minCheckInterval = 10 * time.Second
	// A portal that refuses a login is not tried for a minute, then for twice as long each time.
	firstRest   = time.Minute
	longestRest = 32 * time.Minute
)

// watch is the knowledge of Keep about a target.
type watch struct {
	checkedAt, due time.Time          // checkedAt: initially the time when its first volume was staged
	refusals       map[string]refusal // by portal
}

// refusal is a portal that refused a login.
type refusal struct {
	rest  time.Duration
	until time.Time
}

// counts are numbers by a target's name.
type counts struct {
	mutex sync.Mutex
	of    map[string]int
}

// set stores a number; 0 removes it.
func (c *counts) set(iqn string, number int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	if c.of[iqn] = number; number == 0 {
		delete(c.of, iqn)
	}
}

func (c *counts) get(iqn string) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.of[iqn]
}

// requestCheck asks Keep to check a target soon. It never blocks: if the queue is full, the regular check follows anyway.
func (s *Service) requestCheck(iqn string) {
	select {
	case s.asked <- iqn:
	default:
	}
}

// Keep checks, periodically and soon after a call for a volume, whether the targets of staged volumes have portals without a
// session, until the context ends. It checks one target at a time, so a target never has two discoveries at once.
func (s *Service) Keep(ctx context.Context) {
	watched := map[string]*watch{}
	for {
		timer := time.NewTimer(time.Until(s.round(ctx, watched)))
		select {
		case <-ctx.Done():
		case iqn := <-s.asked:
			if entry := watched[iqn]; entry != nil {
				entry.due = earlier(entry.due, entry.checkedAt.Add(minCheckInterval))
			}
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// round checks the targets that are due, and returns the time at which the next one is.
func (s *Service) round(ctx context.Context, watched map[string]*watch) time.Time {
	s.clearAll(ctx)
	next := time.Now().Add(checkInterval)
	volumes, err := s.volumesOf()
	if err != nil {
		slog.WarnContext(ctx, "not all that is staged is known", "problem", err)
	}
	for iqn := range watched {
		if volumes[iqn] == nil {
			delete(watched, iqn)
		}
	}
	for iqn := range volumes {
		entry := watched[iqn]
		if entry == nil {
			entry = &watch{checkedAt: time.Now(), due: time.Now().Add(rand.N(checkInterval)), refusals: map[string]refusal{}}
			watched[iqn] = entry
		}
		if !entry.due.After(time.Now()) && ctx.Err() == nil {
			if err := s.renew(ctx, iqn, entry.refusals); err != nil {
				slog.WarnContext(ctx, "portals that came later", "target", iqn, "problem", err)
			}
			entry.checkedAt = time.Now()
			entry.due = entry.checkedAt.Add(checkInterval + rand.N(checkJitter))
		}
		next = earlier(next, entry.due)
	}
	return next
}

// volumesOf returns the volumes that are staged and stay so, by target. The error names the records that cannot be read.
func (s *Service) volumesOf() (map[string][]*record, error) {
	staged, err := s.state.all()
	volumes := map[string][]*record{}
	for _, known := range staged {
		if !known.Leaving && !s.outlived(known) {
			volumes[known.IQN] = append(volumes[known.IQN], known)
		}
	}
	return volumes, err
}
