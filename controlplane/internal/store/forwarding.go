package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
)

// storedKey is a forwarding key as it is stored in etcd.
type storedKey struct {
	ID    string         `json:"id"`
	Key   keyring.Sealed `json:"key"`
	Since time.Time      `json:"since"`
	Used  time.Time      `json:"used,omitzero"`
}

// keyList is a list of keys that rotates, under one key of the store.
type keyList struct {
	store *Store
	key   string
}

// sharedKeys are known to every gateway of the cluster. pairRoots are known to no gateway; the keys of pairs are derived from
// them.
func (s *Store) sharedKeys() keyList { return keyList{s, s.prefix + "forwarding-keys"} }
func (s *Store) pairRoots() keyList  { return keyList{s, s.prefix + "forwarding-roots"} }

// ForwardingKeys returns the keys that all gateways share; the first is used for authentication. It returns none before the first
// RotateForwardingKeys.
func (s *Store) ForwardingKeys(ctx context.Context) ([]model.ForwardingKey, error) {
	return s.sharedKeys().read(ctx)
}

// RotateForwardingKeys rotates the shared keys if that is due, and returns them.
func (s *Store) RotateForwardingKeys(ctx context.Context) ([]model.ForwardingKey, error) {
	return s.sharedKeys().rotate(ctx, model.RotateForwardingKeys)
}

// RotatePairRoots rotates the root keys of pairs if that is due, and returns them.
func (s *Store) RotatePairRoots(ctx context.Context) ([]model.ForwardingKey, error) {
	return s.pairRoots().rotate(ctx, model.RotateForwardingKeys)
}

// RotatePairRootsNow makes a new root key the first one at once.
func (s *Store) RotatePairRootsNow(ctx context.Context) ([]model.ForwardingKey, error) {
	return s.pairRoots().rotate(ctx, model.RotateForwardingKeysNow)
}

func (l keyList) read(ctx context.Context) ([]model.ForwardingKey, error) {
	stored, _, err := l.stored(ctx)
	if err != nil {
		return nil, err
	}
	return l.open(stored)
}

// stored returns the stored keys and their revision; none before the first rotation.
func (l keyList) stored(ctx context.Context) ([]storedKey, int64, error) {
	got, err := l.store.client.Get(ctx, l.key)
	if err != nil {
		return nil, 0, fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return nil, 0, nil
	}
	var stored []storedKey
	if err := json.Unmarshal(got.Kvs[0].Value, &stored); err != nil {
		return nil, 0, fmt.Errorf("forwarding keys in the store: %w", err)
	}
	return stored, got.Kvs[0].ModRevision, nil
}

func (l keyList) open(stored []storedKey) ([]model.ForwardingKey, error) {
	keys := make([]model.ForwardingKey, len(stored))
	for i, k := range stored {
		text, err := l.store.keyring.Open(k.Key, l.key)
		if err != nil {
			return nil, fmt.Errorf("forwarding key %s in the store %w", k.ID, err)
		}
		raw, err := hex.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("forwarding key %s in the store is not hexadecimal", k.ID)
		}
		keys[i] = model.ForwardingKey{ID: k.ID, Key: model.NewSecret(string(raw)), Since: k.Since, Used: k.Used}
	}
	return keys, nil
}

// rotate stores and returns the result of `change`. If several replicas do so at once, one of them stores. Keys that are not
// encrypted with the keyring's first key are stored again, because nothing else rewrites them, and the keyring's old key could be
// removed before they rotate.
func (l keyList) rotate(ctx context.Context, change func([]model.ForwardingKey, time.Time) []model.ForwardingKey,
) ([]model.ForwardingKey, error) {
	was, revision, err := l.stored(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := l.open(was)
	if err != nil {
		return nil, err
	}
	next := change(keys, l.store.now().UTC())
	sealedAnew := slices.ContainsFunc(was, func(k storedKey) bool { return !l.store.keyring.Newest(k.Key) })
	if slices.Equal(next, keys) && !sealedAnew {
		return keys, nil
	}
	stored := make([]storedKey, len(next))
	for i, k := range next {
		stored[i] = storedKey{ID: k.ID, Since: k.Since, Used: k.Used,
			Key: l.store.keyring.Seal(hex.EncodeToString([]byte(k.Key.Reveal())), l.key)}
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	done, err := l.store.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(l.key), "=", revision)).
		Then(clientv3.OpPut(l.key, string(value))).Commit()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if !done.Succeeded {
		return l.read(ctx)
	}
	return next, nil
}
