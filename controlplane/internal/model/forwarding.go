package model

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// The life of a forwarding key. All gateways know a key before a gateway authenticates with it. They accept it for the same time
// after the next key has replaced it.
const (
	ForwardingKeyAge     = 24 * time.Hour
	ForwardingKeyOverlap = 15 * time.Minute
)

// maxRootKeys bounds the generations of a root key. A gateway tries them one after the other.
const maxRootKeys = 4

// ForwardingKey authenticates gateways to each other.
type ForwardingKey struct {
	ID  string
	Key Secret
	// Since is the time at which the key was made. Used is the time from which gateways authenticate with it; zero: not yet.
	Since time.Time
	Used  time.Time
}

// NewForwardingKey makes a key of 32 random bytes.
func NewForwardingKey(now time.Time) ForwardingKey {
	var raw [36]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return ForwardingKey{ID: hex.EncodeToString(raw[32:]), Key: NewSecret(string(raw[:32])), Since: now}
}

// RotateForwardingKeys returns the valid keys at the time now. Gateways authenticate with the first and accept all. There are at
// most three: the next one, while it is distributed; the present one; and the previous one, while a gateway may still have it as
// its first.
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

// RotateForwardingKeysNow makes a new first key at once. The earlier ones are accepted for ForwardingKeyOverlap, at most
// maxRootKeys-1 of them. That is enough only where a gateway tries an earlier key after the peer refused the newest one.
func RotateForwardingKeysNow(keys []ForwardingKey, now time.Time) []ForwardingKey {
	next := NewForwardingKey(now)
	next.Used = now
	all := []ForwardingKey{next}
	for _, key := range keys {
		if !key.Used.IsZero() && len(all) < maxRootKeys {
			all = append(all, key)
		}
	}
	return all
}

// PairKey derives the key by which origin and owner authenticate to each other, from a root key that no gateway knows. It is
// valid for these two incarnations and in this direction only.
func PairKey(root ForwardingKey, origin, owner GatewayRef) ForwardingKey {
	mac := hmac.New(sha256.New, []byte(root.Key.Reveal()))
	fmt.Fprintf(mac, "sluice forwarding\x00%d\x00%s\x00%d\x00%s", origin.Number, origin.Incarnation, owner.Number, owner.Incarnation)
	return ForwardingKey{ID: fmt.Sprintf("%d-%s-%s", origin.Number, origin.Incarnation, root.ID),
		Key: NewSecret(string(mac.Sum(nil)))}
}
