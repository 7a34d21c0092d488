package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// maxSealedNamed bounds how many objects MissingKeysError names of a key.
const maxSealedNamed = 5

// MissingKeysError says that the store holds secrets under keys that the key file does not have.
type MissingKeysError struct {
	// Sealed are the objects, as in `Host web`, by the key's id.
	Sealed map[string][]string
}

func (e *MissingKeysError) Error() string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(e.Sealed)) {
		objects := e.Sealed[id]
		named := strings.Join(objects[:min(len(objects), maxSealedNamed)], ", ")
		if more := len(objects) - maxSealedNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, fmt.Sprintf("%s encrypted with key %q", named, id))
	}
	return "the key file lacks keys that secrets in the store are encrypted with: " + strings.Join(all, "; ") +
		": " + putKeyBack
}

// putKeyBack is the mend where a key is missing.
const putKeyBack = "put its line back into the key file, behind the others; it can go once nothing is encrypted with it any more " +
	"(`sluice-controlplane key --help` tells how)"

// checkKeys says by a MissingKeysError where a secret's key is gone. One is enough for no replica to tell gateways anything, so it is
// looked for before one serves: that ends the roll-out of a key file whose old key was taken out too early at its first replica.
func (s *Store) checkKeys(ctx context.Context) error {
	missing := map[string][]string{}
	look := func(name string, secrets ...sealed) {
		for _, secret := range secrets {
			if secret.Key != "" && s.keyring.aead[secret.Key] == nil && !slices.Contains(missing[secret.Key], name) {
				missing[secret.Key] = append(missing[secret.Key], name)
			}
		}
	}
	for _, kind := range []model.Kind{model.KindHost, model.KindStoragePool} {
		if err := s.eachSealed(ctx, kind, look); err != nil {
			return err
		}
	}
	for _, list := range []keyList{s.sharedKeys(), s.pairRoots()} {
		keys, _, err := list.stored(ctx)
		if err != nil {
			return err
		}
		for _, key := range keys {
			look("the forwarding keys", key.Key)
		}
	}
	if len(missing) > 0 {
		return &MissingKeysError{missing}
	}
	return nil
}

// eachSealed tells the secrets of every object of a kind, as they are stored.
func (s *Store) eachSealed(ctx context.Context, kind model.Kind, tell func(name string, secrets ...sealed)) error {
	prefix := s.prefix + "objects/" + string(kind) + "/"
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		got, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(MaxPageSize))
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		for _, kv := range got.Kvs {
			var kept struct {
				Secrets []sealed `json:"secrets"`
			}
			if err := json.Unmarshal(kv.Value, &kept); err != nil {
				return fmt.Errorf("%s in the store: %w", kv.Key, err)
			}
			tell(string(kind)+" "+strings.TrimPrefix(string(kv.Key), prefix), kept.Secrets...)
			from = string(kv.Key) + "\x00"
		}
		if !got.More {
			return nil
		}
	}
}
