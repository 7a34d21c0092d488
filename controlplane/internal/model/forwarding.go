package model

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// The life of a forwarding key: it is known to all gateways before one proves itself with it, and accepted for as
// long after the next has taken its place.
const (
	ForwardingKeyAge     = 24 * time.Hour
	ForwardingKeyOverlap = 15 * time.Minute
)

// ForwardingKey authenticates gateways to each other.
type ForwardingKey struct {
	ID  string
	Key Secret
	// Since is when it was made, Used when it became the one to prove oneself with; zero: not yet.
	Since time.Time
	Used  time.Time
}

// NewForwardingKey makes one of 32 random bytes.
func NewForwardingKey(now time.Time) ForwardingKey {
	var raw [36]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return ForwardingKey{ID: hex.EncodeToString(raw[32:]), Key: NewSecret(string(raw[:32])), Since: now}
}

// RotateForwardingKeys gives the keys that hold now: the first is the one to prove oneself with, all are accepted. At most
// three: the next one, while it spreads; the present one; the one before, until nobody can hold it as the first any more.
func RotateForwardingKeys(keys []ForwardingKey, now time.Time) []ForwardingKey {
	if len(keys) == 0 {
		first := NewForwardingKey(now)
		first.Used = now
		return []ForwardingKey{first}
	}
	next := append([]ForwardingKey(nil), keys...)
	if len(next) > 1 && next[1].Used.IsZero() && now.Sub(next[1].Since) >= ForwardingKeyOverlap {
		next[0], next[1] = next[1], next[0]
		next[0].Used = now
		next = next[:2]
		return next
	}
	if len(next) > 1 && !next[1].Used.IsZero() && now.Sub(next[0].Used) >= ForwardingKeyOverlap {
		next = next[:1]
	}
	if len(next) == 1 && now.Sub(next[0].Used) >= ForwardingKeyAge {
		next = append(next, NewForwardingKey(now))
	}
	return next
}
