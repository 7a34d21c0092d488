package dispatch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func (s desiredState) keys() []objectKey {
	keys := make([]objectKey, 0, len(s))
	for key := range s {
		keys = append(keys, key)
	}
	return sorted(keys)
}

// sameKeys says whether another state is of the same objects.
func (s desiredState) sameKeys(other desiredState) bool {
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

func sorted(keys []objectKey) []objectKey {
	slices.SortFunc(keys, func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	})
	return keys
}

// digest names the whole state; gateway_stream.proto says what it is made of.
func (s desiredState) digest() []byte { return s.proof().digest() }

// proof is what a state's digest is made of, in one piece, and where in it each object's own digest lies: an update changes a few
// of thousands.
type proof struct {
	text []byte
	at   map[objectKey]int
}

func (s desiredState) proof() proof {
	p := proof{make([]byte, 0, len(s)*96), make(map[objectKey]int, len(s))}
	for _, key := range s.keys() {
		p.text = append(append(append(p.text, byte(key.kind)), key.id...), 0)
		p.at[key] = len(p.text)
		p.text = append(p.text, s[key].GetDigest()...)
	}
	return p
}

// put takes up another digest of an object that the state has; all are of one length (SHA-256).
func (p proof) put(key objectKey, digest []byte) { copy(p.text[p.at[key]:], digest) }

func (p proof) digest() []byte {
	sum := sha256.Sum256(p.text)
	return sum[:]
}

// updateBytes bounds one message of an update: far below what a receiver takes.
const updateBytes = 512 << 10

// updates lead from one state to another; from nil means a full one. None: there is nothing to tell.
func updates(from, to desiredState, version uint64) []*pb.StreamUpdate {
	put, removed := differences(from, to)
	if from != nil && len(put) == 0 && len(removed) == 0 {
		return nil
	}
	return updatesOf(to, put, removed, &pb.StreamUpdate{Version: version, Full: from == nil, Digest: to.digest()})
}

// updatesOf is what the last of them says, in as many parts as it takes to say all that was put and removed.
func updatesOf(to desiredState, put, removed []objectKey, last *pb.StreamUpdate) []*pb.StreamUpdate {
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
		add(len(key.id) + proto.Size(to[key]))
		current.Put = append(current.Put, to[key])
	}
	for _, key := range removed {
		add(len(key.id) + 16)
		current.Removed = append(current.Removed, &pb.ObjectKey{Kind: key.kind, Id: key.id})
	}
	current.More, current.Digest = false, last.Digest
	return append(all, current)
}

// differences between two states, sorted: what is new or another in the second, and what it has no more.
func differences(from, to desiredState) (put, removed []objectKey) {
	for key, object := range to {
		old := from[key]
		if old == object { // taken over from the last time
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
