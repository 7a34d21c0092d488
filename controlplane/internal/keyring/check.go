package keyring

import (
	"encoding/json"
	"errors"
	"fmt"
)

// keyCheckText is the plaintext of a store's key check value.
const keyCheckText = "sluice"

// NewCheckValue makes the key check value of a store: a known text, encrypted with the first key and bound to the key in etcd under
// which the value is stored.
func (k *Keyring) NewCheckValue(etcdKey string) []byte {
	value, err := json.Marshal(k.Seal(keyCheckText, etcdKey))
	if err != nil {
		panic(err) // a struct of a string and bytes
	}
	return value
}

// CheckValue compares the keyring with the key check value that is stored under a key in etcd. newest reports whether the first key
// encrypted it. Errors: MissingKeysError, WrongKeyError, a value that is no key check value.
func (k *Keyring) CheckValue(value []byte, etcdKey string) (newest bool, err error) {
	var stored Sealed
	if err := json.Unmarshal(value, &stored); err != nil {
		return false, fmt.Errorf("%s in the store: %w", etcdKey, err)
	}
	if err := k.Verify(stored, etcdKey, "the key check value"); err != nil {
		return false, err
	}
	return k.Newest(stored), nil
}

// Verify decrypts a stored secret and discards it. holder names the object that has the secret, for the error. Errors:
// MissingKeysError, WrongKeyError.
func (k *Keyring) Verify(secret Sealed, binding, holder string) error {
	if secret.Key != "" && !k.Has(secret.Key) {
		return &MissingKeysError{map[string][]string{secret.Key: {holder}}}
	}
	if _, err := k.Open(secret, binding); errors.Is(err, errSealBroken) {
		return &WrongKeyError{secret.Key, holder}
	} else if err != nil {
		return fmt.Errorf("%s in the store %w", holder, err)
	}
	return nil
}
