package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// JoinToken is a token by which servers join. The store has no secret of it.
type JoinToken struct {
	ID string `json:"id"`
	// Hash is the SHA-256 of its secret.
	Hash    []byte    `json:"hash"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

func (s *Store) joinTokenPrefix() string { return s.prefix + "join-tokens/" }

// AddJoinToken stores a token that is valid from now for the time ttl, and deletes expired tokens. It returns the token with its times.
func (s *Store) AddJoinToken(ctx context.Context, token JoinToken, ttl time.Duration) (JoinToken, error) {
	token.Created = s.now().UTC()
	token.Expires = token.Created.Add(ttl)
	all, err := s.allJoinTokens(ctx)
	if err != nil {
		return token, err
	}
	for _, old := range all {
		if !old.Expires.After(token.Created) {
			if _, err := s.DeleteJoinToken(ctx, old.ID); err != nil {
				return token, err
			}
		}
	}
	return token, s.putRecord(ctx, s.joinTokenPrefix()+token.ID, token)
}

// JoinTokens returns the valid tokens, in the order of their ends.
func (s *Store) JoinTokens(ctx context.Context) ([]JoinToken, error) {
	all, err := s.allJoinTokens(ctx)
	if err != nil {
		return nil, err
	}
	now := s.now()
	all = slices.DeleteFunc(all, func(token JoinToken) bool { return !token.Expires.After(now) })
	slices.SortFunc(all, func(a, b JoinToken) int { return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

func (s *Store) allJoinTokens(ctx context.Context) ([]JoinToken, error) {
	return readRecords[JoinToken](ctx, s, s.joinTokenPrefix())
}

// DeleteJoinToken reports whether there was a token with this id, which it deletes.
func (s *Store) DeleteJoinToken(ctx context.Context, id string) (bool, error) {
	done, err := s.client.Delete(ctx, s.joinTokenPrefix()+id)
	if err != nil {
		return false, committing(err)
	}
	return done.Deleted > 0, nil
}

// putRecord stores a record of this process's own making under a key.
func (s *Store) putRecord(ctx context.Context, key string, record any) error {
	value, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if _, err := s.client.Put(ctx, key, string(value)); err != nil {
		return committing(err)
	}
	return nil
}

// readRecords returns the records below a prefix, in the order of their keys.
func readRecords[R any](ctx context.Context, s *Store, prefix string) ([]R, error) {
	got, err := s.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	records := make([]R, len(got.Kvs))
	for i, kv := range got.Kvs {
		if err := json.Unmarshal(kv.Value, &records[i]); err != nil {
			return nil, fmt.Errorf("%s in the store: %w", kv.Key, err)
		}
	}
	return records, nil
}
