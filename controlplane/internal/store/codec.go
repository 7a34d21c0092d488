package store

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
)

// envelope is the stored form of an object. Its secrets are separate and encrypted, in the order in which secretsOf lists them.
type envelope[T model.Object] struct {
	Object  T                `json:"object"`
	Secrets []keyring.Sealed `json:"secrets,omitempty"`
}

func (c *Collection[T]) encode(object T) ([]byte, error) {
	kept := envelope[T]{Object: object}
	for i, secret := range c.secrets(object) {
		kept.Secrets = append(kept.Secrets, c.store.keyring.Seal(secret.Reveal(), sealContext(object, i)))
	}
	value, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", c.kind, object.Metadata().Name, err)
	}
	return value, nil
}

func (c *Collection[T]) decode(key string, value []byte, version int64) (T, error) {
	var kept envelope[T]
	if err := json.Unmarshal(value, &kept); err != nil {
		return c.empty(), fmt.Errorf("%s in the store: %w", key, err)
	}
	object := kept.Object
	if none := *new(T); any(object) == any(none) {
		return c.empty(), fmt.Errorf("%s in the store holds no object", key)
	}
	for i, secret := range c.secrets(object) {
		if i >= len(kept.Secrets) {
			return object, fmt.Errorf("%s in the store: secret %d is missing", key, i)
		}
		text, err := c.store.keyring.Open(kept.Secrets[i], sealContext(object, i))
		if err != nil {
			return object, fmt.Errorf("%s in the store: secret %d %w", key, i, err)
		}
		*secret = model.NewSecret(text)
	}
	object.SetDefaults()
	object.Metadata().Version = version
	return object, nil
}

// amendSealed changes the status of every object and leaves its secrets encrypted, because a restore has no key to decrypt them.
func (c *Collection[T]) amendSealed(ctx context.Context, change func(*tx, T)) error {
	got, err := c.store.client.Get(ctx, c.prefix(), clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	for _, kv := range got.Kvs {
		var kept envelope[T]
		if err := json.Unmarshal(kv.Value, &kept); err != nil {
			return fmt.Errorf("%s in the store: %w", kv.Key, err)
		}
		var t tx
		change(&t, kept.Object)
		value, err := json.Marshal(kept)
		if err != nil {
			return fmt.Errorf("%s in the store: %w", kv.Key, err)
		}
		t.compare(clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision), nil)
		t.put(string(kv.Key), string(value))
		if _, err := c.store.commit(ctx, &t); err != nil {
			return err
		}
	}
	return nil
}

// complete sets the defaults of a user's object, and converts each value to its canonical form, as it is stored.
func complete(object model.Object) {
	object.SetDefaults()
	if values, several := object.(model.Normalizer); several {
		values.Normalize()
	}
}

// sealContext binds a secret to its object: copied to another object, it cannot be decrypted.
func sealContext(object model.Object, index int) string {
	return placeOf(object.Kind(), object.Metadata().UID, index)
}

func placeOf(kind model.Kind, uid string, index int) string {
	return fmt.Sprintf("%s/%s/%d", kind, uid, index)
}
