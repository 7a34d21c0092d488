package store

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
)

// authorityHolder names the authority in errors about keys.
const authorityHolder = "the certificate authority"

// storedAuthority is the authority as it is stored in etcd.
type storedAuthority struct {
	Certificate string         `json:"certificate"`
	Key         keyring.Sealed `json:"key"`
}

func (s *Store) authorityKey() string { return s.prefix + "authority" }

// SetAuthority stores the certificate and the private key (PEM) of the system's authority. The key is encrypted.
func (s *Store) SetAuthority(ctx context.Context, certificate string, key model.Secret) error {
	return s.putRecord(ctx, s.authorityKey(), storedAuthority{certificate, s.keyring.Seal(key.Reveal(), s.authorityKey())})
}

// Authority returns the certificate and the private key (PEM) of the system's authority. Without an authority the certificate is empty.
func (s *Store) Authority(ctx context.Context) (certificate string, key model.Secret, err error) {
	stored, _, err := s.storedAuthority(ctx)
	if err != nil || stored.Certificate == "" {
		return "", model.Secret{}, err
	}
	text, err := s.keyring.Open(stored.Key, s.authorityKey())
	if err != nil {
		return "", model.Secret{}, fmt.Errorf("the private key of %s in the store %w", authorityHolder, err)
	}
	return stored.Certificate, model.NewSecret(text), nil
}

// storedAuthority returns the record and its revision; 0: there is none.
func (s *Store) storedAuthority(ctx context.Context) (storedAuthority, int64, error) {
	var stored storedAuthority
	got, err := s.client.Get(ctx, s.authorityKey())
	if err != nil {
		return stored, 0, fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return stored, 0, nil
	}
	if err := json.Unmarshal(got.Kvs[0].Value, &stored); err != nil {
		return stored, 0, fmt.Errorf("%s in the store: %w", s.authorityKey(), err)
	}
	return stored, got.Kvs[0].ModRevision, nil
}

// resealAuthority encrypts the private key with the first key of the keyring. Nothing else writes it again, and the keyring's old key
// could be removed.
func (s *Store) resealAuthority(ctx context.Context) error {
	return retry(ctx, func() error {
		stored, revision, err := s.storedAuthority(ctx)
		if err != nil || revision == 0 || s.keyring.Newest(stored.Key) {
			return err
		}
		text, err := s.keyring.Open(stored.Key, s.authorityKey())
		if err != nil {
			return fmt.Errorf("the private key of %s in the store %w", authorityHolder, err)
		}
		stored.Key = s.keyring.Seal(text, s.authorityKey())
		value, err := json.Marshal(stored)
		if err != nil {
			return err
		}
		var t tx
		t.compare(clientv3.Compare(clientv3.ModRevision(s.authorityKey()), "=", revision), nil)
		t.put(s.authorityKey(), string(value))
		_, err = s.commit(ctx, &t)
		return err
	})
}
