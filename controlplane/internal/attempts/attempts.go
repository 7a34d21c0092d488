// Package attempts limits how often a network fails to prove who it is.
package attempts

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of failed attempts.
const (
	// burst is how often a network may fail at once, and Every the time after which it may fail once more.
	burst = 5
	Every = 10 * time.Second
	// maxNetworks bounds the networks that are remembered.
	maxNetworks = 4096
)

// Limiter limits failed attempts by network. Its methods are safe for concurrent use.
type Limiter struct {
	mutex sync.Mutex
	of    map[netip.Prefix]*rate.Limiter
}

// New returns a limiter that knows no failures.
func New() *Limiter { return &Limiter{of: map[netip.Prefix]*rate.Limiter{}} }

// Permitted reports whether an address may try.
func (a *Limiter) Permitted(from net.Addr) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	limit := a.of[NetworkOf(from)]
	return limit == nil || limit.Tokens() >= 1
}

// Failed records that an address has tried and failed.
func (a *Limiter) Failed(from net.Addr) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	network := NetworkOf(from)
	if a.of[network] == nil {
		a.makeRoom()
		a.of[network] = rate.NewLimiter(rate.Every(Every), burst)
	}
	a.of[network].Allow()
}

// makeRoom forgets networks that have not failed recently; if there is none, it forgets any one.
func (a *Limiter) makeRoom() {
	if len(a.of) < maxNetworks {
		return
	}
	for network, limit := range a.of {
		if limit.Tokens() >= burst {
			delete(a.of, network)
		}
	}
	for network := range a.of {
		if len(a.of) < maxNetworks {
			return
		}
		delete(a.of, network)
	}
}

// NetworkOf returns the part of an address that one party may control entirely.
func NetworkOf(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
