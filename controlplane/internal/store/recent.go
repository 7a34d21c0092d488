package store

import (
	"hash/maphash"
	"sync"

	"sluice.dev/sluice/controlplane/internal/model"
)

// recent has the present objects of a kind in the store, as far as this process knows them. Several watches report each change,
// and the leader's watch reports its own writes; decoding is the most expensive part of that. So each change is decoded once, and
// its receivers must not change the object.
//
// An object is found by its stored text, not by its time: the same text under the same key is the same object, regardless of the
// writer.
type recent[T model.Object] struct {
	mutex sync.Mutex
	seed  maphash.Seed
	known map[string]*known[T]
}

// known is an object, once it was decoded or stored by this process. The version of an object that this process stored is unknown
// (0) until a watch reports it.
type known[T model.Object] struct {
	text    uint64 // its hash
	version int64
	once    sync.Once
	object  T
	err     error
}

func newRecent[T model.Object]() *recent[T] {
	return &recent[T]{seed: maphash.MakeSeed(), known: map[string]*known[T]{}}
}

// expect records an object that is about to be stored. The caller must not use it any more.
func (r *recent[T]) expect(key string, text []byte, object T) {
	k := &known[T]{text: maphash.Bytes(r.seed, text), object: object}
	k.once.Do(func() {}) // there is nothing to decode
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.known[key] = k
}

// decodeOnce returns the object that was stored as text in a version. The first caller decodes it.
func (r *recent[T]) decodeOnce(key string, text []byte, version int64, decode func() (T, error)) (T, error) {
	k := r.find(key, maphash.Bytes(r.seed, text), version)
	k.once.Do(func() { k.object, k.err = decode() })
	return k.object, k.err
}

// find returns the entry for this text and version, or makes one. If a newer entry exists, a watch that is behind gets an entry
// of its own.
func (r *recent[T]) find(key string, text uint64, version int64) *known[T] {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	k := r.known[key]
	switch {
	case k != nil && k.text == text && k.version == version:
		return k
	case k != nil && k.text == text && k.version == 0:
		k.version = version
		k.object.Metadata().Version = version
		return k
	}
	entry := &known[T]{text: text, version: version}
	if k == nil || k.version < version {
		r.known[key] = entry
	}
	return entry
}

// forget drops an object that no longer exists.
func (r *recent[T]) forget(key string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.known, key)
}
