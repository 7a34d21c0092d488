package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// storedKey is a forwarding key as it lies in etcd.
type storedKey struct {
	ID    string    `json:"id"`
	Key   sealed    `json:"key"`
	Since time.Time `json:"since"`
	Used  time.Time `json:"used,omitzero"`
}

func (s *Store) forwardingKey() string { return s.prefix + "forwarding-keys" }

// ForwardingKeys reads the keys that gateways prove themselves to each other with, the first to use first. None before the
// first RotateForwardingKeys.
func (s *Store) ForwardingKeys(ctx context.Context) ([]model.ForwardingKey, error) {
	stored, _, err := s.storedKeys(ctx)
	if err != nil {
		return nil, err
	}
	return s.openForwardingKeys(stored)
}

// storedKeys are the keys as they are stored, and in which revision; none before the first RotateForwardingKeys.
func (s *Store) storedKeys(ctx context.Context) ([]storedKey, int64, error) {
	got, err := s.client.Get(ctx, s.forwardingKey())
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

func (s *Store) openForwardingKeys(stored []storedKey) ([]model.ForwardingKey, error) {
	keys := make([]model.ForwardingKey, len(stored))
	for i, k := range stored {
		text, err := s.keyring.open(k.Key, s.forwardingKey())
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

// RotateForwardingKeys does what is due and returns what holds now. Replicas may do so at once: one of them stores. Keys that are
// encrypted with another key than the keyring's first are stored anew as well: nobody else writes them, and the keyring's old key
// could go before their own time has come.
func (s *Store) RotateForwardingKeys(ctx context.Context) ([]model.ForwardingKey, error) {
	was, revision, err := s.storedKeys(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := s.openForwardingKeys(was)
	if err != nil {
		return nil, err
	}
	next := model.RotateForwardingKeys(keys, s.now().UTC())
	sealedAnew := slices.ContainsFunc(was, func(k storedKey) bool { return !s.keyring.newest(k.Key) })
	if slices.Equal(next, keys) && !sealedAnew {
		return keys, nil
	}
	stored := make([]storedKey, len(next))
	for i, k := range next {
		stored[i] = storedKey{ID: k.ID, Since: k.Since, Used: k.Used,
			Key: s.keyring.seal(hex.EncodeToString([]byte(k.Key.Reveal())), s.forwardingKey())}
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.forwardingKey()), "=", revision)).
		Then(clientv3.OpPut(s.forwardingKey(), string(value))).Commit()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if !done.Succeeded {
		return s.ForwardingKeys(ctx)
	}
	return next, nil
}
