package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
)

// eachSealed calls tell with the stored secrets of every object of a kind, its name and its uid.
func (s *Store) eachSealed(ctx context.Context, kind model.Kind, tell func(name, uid string, secrets ...keyring.Sealed)) error {
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
				Secrets []keyring.Sealed `json:"secrets"`
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
