package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// keyCheckText is what a store's key check value decrypts to.
const keyCheckText = "sluice"

// WrongKeyError says that the key file holds another key than the store's under the same id.
type WrongKeyError struct {
	// Key is the id. What names something that the key does not decrypt, as in `Host web`.
	Key, What string
}

func (e *WrongKeyError) Error() string {
	return fmt.Sprintf("the key file's key %q is not the one that encrypted the secrets of this store: it does not decrypt %s. Either the key "+
		"file is another system's, or --etcd-endpoints and --cluster name another system: give this replica the key file of the others", e.Key, e.What)
}

func (s *Store) keyCheckKey() string { return s.prefix + "key-check" }

// checkKeyValue compares the keyring with the key check value, which the first replica of a store makes: a known text, encrypted. So
// a replica with another system's keys is found before it serves, also while the store holds no secret. A value under an older key of
// the ring is encrypted anew with the first one, as the forwarding keys are. Errors: MissingKeysError, WrongKeyError.
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
			var stored sealed
			if err := json.Unmarshal(got.Kvs[0].Value, &stored); err != nil {
				return fmt.Errorf("%s in the store: %w", key, err)
			}
			if err := s.mustOpen(stored, key, "the key check value"); err != nil {
				return err
			}
			if s.keyring.newest(stored) {
				return nil
			}
		}
		value, err := json.Marshal(s.keyring.seal(keyCheckText, key))
		if err != nil {
			return err
		}
		var t tx
		t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", revision), nil)
		t.put(key, string(value))
		_, err = s.commit(ctx, &t)
		return err
	})
}

// mustOpen decrypts a stored secret only to see that it can be. Errors: MissingKeysError, WrongKeyError.
func (s *Store) mustOpen(secret sealed, place, what string) error {
	if secret.Key != "" && s.keyring.aead[secret.Key] == nil {
		return &MissingKeysError{map[string][]string{secret.Key: {what}}}
	}
	if _, err := s.keyring.open(secret, place); errors.Is(err, errSealBroken) {
		return &WrongKeyError{secret.Key, what}
	} else if err != nil {
		return fmt.Errorf("%s in the store %w", what, err)
	}
	return nil
}

// eachSecret gives every secret of the store with what people call its holder and the place that it is bound to.
func (s *Store) eachSecret(ctx context.Context, visit func(secret sealed, place, holder string)) error {
	for _, kind := range []model.Kind{model.KindHost, model.KindStoragePool} {
		err := s.eachSealed(ctx, kind, func(name, uid string, secrets ...sealed) {
			for i, secret := range secrets {
				visit(secret, placeOf(kind, uid, i), name)
			}
		})
		if err != nil {
			return err
		}
	}
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

// checkKeys says by a MissingKeysError where a secret's key is gone, and by a WrongKeyError where it is another one: the first secret
// under each key is decrypted, as stores of releases before the key check value have none. One secret is enough for no replica to send
// gateways anything, so this comes before a replica serves and before it can be elected: the roll-out of a wrong key file ends at its
// first replica.
func (s *Store) checkKeys(ctx context.Context) error {
	missing, tried := map[string][]string{}, map[string]bool{}
	var wrong error
	err := s.eachSecret(ctx, func(secret sealed, place, holder string) {
		switch {
		case secret.Key == "":
		case s.keyring.aead[secret.Key] == nil:
			if !slices.Contains(missing[secret.Key], holder) {
				missing[secret.Key] = append(missing[secret.Key], holder)
			}
		case !tried[secret.Key]:
			tried[secret.Key] = true
			wrong = cmp.Or(wrong, s.mustOpen(secret, place, holder))
		}
	})
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return &MissingKeysError{missing}
	case wrong != nil:
		return wrong
	}
	return s.checkKeyValue(ctx)
}
