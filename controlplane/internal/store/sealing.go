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
		": " + putKeyBack + ". Where the file is another system's, give this replica the key file of the others"
}

// putKeyBack is the mend where a key is missing.
const putKeyBack = "put its line back into the key file, behind the others; it can go once nothing is encrypted with it any more " +
	"(`sluice-controlplane key --help` tells how)"

// eachSealed gives the secrets of every object of a kind, as they are stored, with what people call the object and with its uid.
func (s *Store) eachSealed(ctx context.Context, kind model.Kind, tell func(name, uid string, secrets ...sealed)) error {
	prefix := s.prefix + "objects/" + string(kind) + "/"
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		got, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(MaxPageSize))
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		for _, kv := range got.Kvs {
			var kept struct {
				Object struct {
					Meta model.Meta `json:"meta"`
				} `json:"object"`
				Secrets []sealed `json:"secrets"`
			}
			if err := json.Unmarshal(kv.Value, &kept); err != nil {
				return fmt.Errorf("%s in the store: %w", kv.Key, err)
			}
			name := string(kind) + " " + strings.TrimPrefix(string(kv.Key), prefix)
			tell(name, kept.Object.Meta.UID, kept.Secrets...)
			from = string(kv.Key) + "\x00"
		}
		if !got.More {
			return nil
		}
	}
}
