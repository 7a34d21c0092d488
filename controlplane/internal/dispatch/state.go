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
	slices.SortFunc(keys, func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	})
	return keys
}

// digest names the whole state; gateway_stream.proto says what it is made of.
func (s desiredState) digest() []byte {
	sum := sha256.New()
	for _, key := range s.keys() {
		sum.Write([]byte{byte(key.kind)})
		sum.Write([]byte(key.id))
		sum.Write([]byte{0})
		sum.Write(s[key].GetDigest())
	}
	return sum.Sum(nil)
}

// updateBytes bounds one message of an update: far below what a receiver takes.
const updateBytes = 512 << 10

// updates lead from one state to another; from nil means a full one. None: there is nothing to tell.
func updates(from, to desiredState, version uint64) []*pb.StreamUpdate {
	var all []*pb.StreamUpdate
	current, size := &pb.StreamUpdate{Version: version, Full: from == nil, More: true}, 0
	add := func(bytes int) {
		if size += bytes; size > updateBytes {
			all = append(all, current)
			current, size = &pb.StreamUpdate{Version: version, Full: from == nil, More: true}, bytes
		}
	}
	for _, key := range to.keys() {
		object := to[key]
		if old := from[key]; old == nil || !bytes.Equal(old.GetDigest(), object.GetDigest()) {
			add(len(key.id) + proto.Size(object))
			current.Put = append(current.Put, object)
		}
	}
	for _, key := range from.keys() {
		if to[key] == nil {
			add(len(key.id) + 16)
			current.Removed = append(current.Removed, &pb.ObjectKey{Kind: key.kind, Id: key.id})
		}
	}
	if from != nil && len(all) == 0 && len(current.Put) == 0 && len(current.Removed) == 0 {
		return nil
	}
	current.More, current.Digest = false, to.digest()
	return append(all, current)
}
