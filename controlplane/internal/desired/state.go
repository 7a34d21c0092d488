package desired

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Keys of the state, sorted.
func (s State) Keys() []Key {
	keys := make([]Key, 0, len(s))
	for key := range s {
		keys = append(keys, key)
	}
	return sorted(keys)
}

// SameKeys reports whether another state has the same objects.
func (s State) SameKeys(other State) bool {
	if len(s) != len(other) {
		return false
	}
	for key := range other {
		if s[key] == nil {
			return false
		}
	}
	return true
}

func sorted(keys []Key) []Key {
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return keys
}

// Digest of the whole state, as gateway_stream.proto defines it.
func (s State) Digest() []byte { return s.Proof().Digest() }

// Proof is the text from which a state's digest is computed, and the offset of each object's own digest in it, because an update
// changes only a few of thousands.
type Proof struct {
	text []byte
	at   map[Key]int
}

// Proof of the state.
func (s State) Proof() Proof {
	p := Proof{make([]byte, 0, len(s)*96), make(map[Key]int, len(s))}
	for _, key := range s.Keys() {
		p.text = append(append(append(p.text, byte(key.Kind)), key.ID...), 0)
		p.at[key] = len(p.text)
		p.text = append(p.text, s[key].GetDigest()...)
	}
	return p
}

// Put replaces the digest of an object that the state has. All digests have the same length (SHA-256).
func (p Proof) Put(key Key, digest []byte) { copy(p.text[p.at[key]:], digest) }

// Digest of the state.
func (p Proof) Digest() []byte {
	sum := sha256.Sum256(p.text)
	return sum[:]
}

// updateBytes bounds one message of an update, in bytes. Receivers accept far more.
const updateBytes = 512 << 10

// Updates returns the messages that lead from one state to another; from nil: a full update. There are none if the states are
// equal.
func Updates(from, to State, version uint64) []*pb.StreamUpdate {
	put, removed := differences(from, to)
	if from != nil && len(put) == 0 && len(removed) == 0 {
		return nil
	}
	return UpdatesOf(to, put, removed, &pb.StreamUpdate{Version: version, Full: from == nil, Digest: to.Digest()})
}

// UpdatesOf returns messages about the objects that were put and removed, in parts of bounded size. The last part has the fields
// of `last`.
func UpdatesOf(to State, put, removed []Key, last *pb.StreamUpdate) []*pb.StreamUpdate {
	var all []*pb.StreamUpdate
	part := func() *pb.StreamUpdate { return &pb.StreamUpdate{Version: last.Version, Full: last.Full, More: true} }
	current, size := part(), 0
	add := func(bytes int) {
		if size += bytes; size > updateBytes {
			all = append(all, current)
			current, size = part(), bytes
		}
	}
	for _, key := range put {
		add(len(key.ID) + proto.Size(to[key]))
		current.Put = append(current.Put, to[key])
	}
	for _, key := range removed {
		add(len(key.ID) + 16)
		current.Removed = append(current.Removed, &pb.ObjectKey{Kind: key.Kind, Id: key.ID})
	}
	current.More, current.Digest = false, last.Digest
	return append(all, current)
}

// differences returns the objects that are new or different in the second state, and those that it no longer has, sorted.
func differences(from, to State) (put, removed []Key) {
	for key, object := range to {
		old := from[key]
		if old == object { // reused from the previous state
			continue
		}
		if old == nil || !bytes.Equal(old.GetDigest(), object.GetDigest()) {
			put = append(put, key)
		}
	}
	for key := range from {
		if to[key] == nil {
			removed = append(removed, key)
		}
	}
	return sorted(put), sorted(removed)
}
