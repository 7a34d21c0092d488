package server

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of failed attempts to join.
const (
	// attemptBurst is how often an address may fail at once, and attemptEvery the time after which it may fail once more.
	attemptBurst = 5
	attemptEvery = 10 * time.Second
	// maxAttempting bounds the addresses that are remembered.
	maxAttempting = 4096
)

// attempts limit how often a network fails to show a valid token. Its methods are safe for concurrent use.
type attempts struct {
	mutex sync.Mutex
	of    map[netip.Prefix]*rate.Limiter
}

func newAttempts() *attempts { return &attempts{of: map[netip.Prefix]*rate.Limiter{}} }

// permitted reports whether an address may try.
func (a *attempts) permitted(from net.Addr) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	limit := a.of[networkOf(from)]
	return limit == nil || limit.Tokens() >= 1
}

// failed records that an address has tried and failed.
func (a *attempts) failed(from net.Addr) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	network := networkOf(from)
	if a.of[network] == nil {
		a.makeRoom()
		a.of[network] = rate.NewLimiter(rate.Every(attemptEvery), attemptBurst)
	}
	a.of[network].Allow()
}

// makeRoom forgets networks that have not failed recently; if there is none, it forgets any one.
func (a *attempts) makeRoom() {
	if len(a.of) < maxAttempting {
		return
	}
	for network, limit := range a.of {
		if limit.Tokens() >= attemptBurst {
			delete(a.of, network)
		}
	}
	for network := range a.of {
		if len(a.of) < maxAttempting {
			return
		}
		delete(a.of, network)
	}
}
