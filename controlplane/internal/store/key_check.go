package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) keyCheckKey() string { return s.prefix + "key-check" }

// checkKeyValue compares the keyring with the key check value, which the first replica of a store makes. So a replica with another
// system's keys is found before it serves, even while the store holds no secret. A value under an older key of the ring is encrypted
// again with the first key, as the forwarding keys are. Errors: MissingKeysError, WrongKeyError.
func (s *Store) checkKeyValue(ctx context.Context) error {
	key := s.keyCheckKey()
	return retry(ctx, func() error {
		got, err := s.client.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		revision := int64(0)
		if len(got.Kvs) > 0 {
			revision = got.Kvs[0].ModRevision
			if newest, err := s.keyring.CheckValue(got.Kvs[0].Value, key); err != nil || newest {
				return err
			}
		}
		var t tx
		t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", revision), nil)
		t.put(key, string(s.keyring.NewCheckValue(key)))
		_, err = s.commit(ctx, &t)
		return err
	})
}

// eachSecret calls visit for every secret of the store, with its object as shown to users and the place to which it is bound.
func (s *Store) eachSecret(ctx context.Context, visit func(secret keyring.Sealed, place, holder string)) error {
	for _, kind := range []model.Kind{model.KindHost, model.KindStoragePool} {
		err := s.eachSealed(ctx, kind, func(name, uid string, secrets ...keyring.Sealed) {
			for i, secret := range secrets {
				visit(secret, placeOf(kind, uid, i), name)
			}
		})
		if err != nil {
			return err
		}
	}
	authority, _, err := s.storedAuthority(ctx)
	if err != nil {
		return err
	}
	visit(authority.Key, s.authorityKey(), authorityHolder)
	for _, list := range []keyList{s.sharedKeys(), s.pairRoots()} {
		keys, _, err := list.stored(ctx)
		if err != nil {
			return err
		}
		for _, key := range keys {
			visit(key.Key, list.key, "the forwarding keys")
		}
	}
	return nil
}

// checkKeys returns a MissingKeysError if the key of a secret is not in the keyring, and a WrongKeyError if a key differs. It
// decrypts the first secret under each key, because stores of releases before the key check value have no other test.
//
// One undecryptable secret prevents a replica from sending gateways anything. Therefore this check precedes serving and election,
// and the roll-out of a wrong key file stops at its first replica.
func (s *Store) checkKeys(ctx context.Context) error {
	missing, tried := map[string][]string{}, map[string]bool{}
	var wrong error
	err := s.eachSecret(ctx, func(secret keyring.Sealed, place, holder string) {
		switch {
		case secret.Key == "":
		case !s.keyring.Has(secret.Key):
			if !slices.Contains(missing[secret.Key], holder) {
				missing[secret.Key] = append(missing[secret.Key], holder)
			}
		case !tried[secret.Key]:
			tried[secret.Key] = true
			wrong = cmp.Or(wrong, s.keyring.Verify(secret, place, holder))
		}
	})
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return &keyring.MissingKeysError{Sealed: missing}
	case wrong != nil:
		return wrong
	}
	return s.checkKeyValue(ctx)
}
