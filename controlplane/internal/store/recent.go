package store

import (
	"hash/maphash"
	"sync"

	"sluice.dev/sluice/controlplane/internal/model"
)

// recent are the objects of a kind as they are in the store now, as far as this process knows: several watches tell of each change, the
// leader's one of what it has stored itself, and to decode is what costs most of telling. Who is told of an object never changes it.
//
// What is known is known by what was stored, not by when: the same text under the same key is the same object, whoever stored it.
type recent[T model.Object] struct {
	mutex sync.Mutex
	seed  maphash.Seed
	known map[string]*known[T]
}

// known is an object, once it is decoded or was stored here. Of one that was stored here the version is not known before it is told
// of: 0.
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

// expect notes an object that is about to be stored; nobody else has it.
func (r *recent[T]) expect(key string, text []byte, object T) {
	k := &known[T]{text: maphash.Bytes(r.seed, text), object: object}
	k.once.Do(func() {}) // there is nothing to decode
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.known[key] = k
}

// tell gives the object that was stored as a text in a version, decoded by whoever asks first.
func (r *recent[T]) tell(key string, text []byte, version int64, decode func() (T, error)) (T, error) {
	k := r.find(key, maphash.Bytes(r.seed, text), version)
	k.once.Do(func() { k.object, k.err = decode() })
	return k.object, k.err
}

// find gives what is known of it, or what is from now on, unless something newer is: a watch that is behind leaves that to the others.
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

// forget drops an object that is gone.
func (r *recent[T]) forget(key string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.known, key)
}
