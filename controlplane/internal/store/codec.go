package store

import (
	"encoding/json"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

// envelope is an object as it is stored: itself, and apart from it its secrets, encrypted, in the
// order in which the noun lists them.
type envelope[T model.Object] struct {
	Object  T        `json:"object"`
	Secrets []sealed `json:"secrets,omitempty"`
}

func (c *Collection[T]) encode(object T) ([]byte, error) {
	kept := envelope[T]{Object: object}
	for i, secret := range c.secrets(object) {
		kept.Secrets = append(kept.Secrets, c.store.keyring.seal(secret.Reveal(), place(object, i)))
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
		text, err := c.store.keyring.open(kept.Secrets[i], place(object, i))
		if err != nil {
			return object, fmt.Errorf("%s in the store: secret %d %w", key, i, err)
		}
		*secret = model.NewSecret(text)
	}
	object.Metadata().Version = version
	return object, nil
}

// place binds a secret to its object: copied to another, it does not open.
func place(object model.Object, index int) string {
	return placeOf(object.Kind(), object.Metadata().UID, index)
}

func placeOf(kind model.Kind, uid string, index int) string {
	return fmt.Sprintf("%s/%s/%d", kind, uid, index)
}
