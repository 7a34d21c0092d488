package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// maxRadosClientName bounds the name of a client, in bytes.
const maxRadosClientName = 255

func (s *Store) radosClientPrefix() string { return s.prefix + "rados-clients/" }

func (s *Store) radosClientKey(pool string, gateway model.GatewayRef) string {
	return fmt.Sprintf("%s%s/%d/%s", s.radosClientPrefix(), pool, gateway.Number, gateway.Incarnation)
}

func decodeRadosClients(key string, value []byte, version int64) (*model.RadosClients, error) {
	record := &model.RadosClients{Version: version}
	if err := json.Unmarshal(value, record); err != nil {
		return nil, fmt.Errorf("%s in the store: %w", key, err)
	}
	return record, nil
}

// WatchRadosClients reports every change of these records, as Collection.Watch does for objects.
func (s *Store) WatchRadosClients(ctx context.Context, after int64, tell func(RecordChange[*model.RadosClients]) error) error {
	return records[*model.RadosClients]{s, s.radosClientPrefix(), decodeRadosClients}.watch(ctx, after, tell)
}

// RecordRadosClient records a client of the connected incarnation for a pool. Nil means that the client is recorded and was not
// blocklisted before. Errors: ErrClientFenced, ErrTooManyClients, ErrReplaced, ErrExpired, ErrBusy.
func (c *Connection) RecordRadosClient(ctx context.Context, pool, client string) error {
	if client == "" || len(client) > maxRadosClientName || pool == "" {
		return model.Precondition("client", "%.300q of pool %q is no client of Ceph", client, pool)
	}
	s, key := c.store, c.store.radosClientKey(pool, c.Ref)
	return retry(ctx, func() error {
		record := &model.RadosClients{PoolUID: pool, Gateway: c.Ref}
		got, err := s.client.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if len(got.Kvs) > 0 {
			if record, err = decodeRadosClients(key, got.Kvs[0].Value, got.Kvs[0].ModRevision); err != nil {
				return err
			}
		}
		with, changed, err := record.WithClient(client)
		if err != nil || !changed {
			return err
		}
		return s.putRadosClients(ctx, &with, func(t *tx) {
			t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.mismatchError)
		})
	})
}

// FenceRadosClients marks clients of a record as blocklisted. seen is the record that the caller read. Errors: ErrBusy if the
// record has changed.
func (term *Term) FenceRadosClients(ctx context.Context, seen *model.RadosClients, clients []string) (*model.RadosClients, error) {
	record := seen.WithFenced(clients)
	err := term.store.putRadosClients(ctx, &record, term.guard)
	if errors.Is(err, errLost) {
		return nil, ErrBusy
	}
	return &record, err
}

func (s *Store) putRadosClients(ctx context.Context, record *model.RadosClients, guard func(*tx)) error {
	value, err := json.Marshal(record)
	if err != nil {
		return err
	}
	var t tx
	t.compare(s.radosClientsAt(record), nil)
	guard(&t)
	t.put(s.radosClientKey(record.PoolUID, record.Gateway), string(value))
	record.Version, err = s.commit(ctx, &t)
	return err
}

// radosClientsAt compares that a record has not changed.
func (s *Store) radosClientsAt(seen *model.RadosClients) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.radosClientKey(seen.PoolUID, seen.Gateway)), "=", seen.Version)
}

// DropRadosClients deletes the record of an incarnation that is gone and from which no gateway takes over any more. seen is the
// record that the caller read. The record is first marked, so that a decision based on the older record assigns no volume to its
// incarnation. If the incarnation was assigned a volume meanwhile, the record stays, because without it the incarnation could not
// be fenced. The record of an incarnation with a stream also stays: records and streams are reported separately, and the gateway
// would assume that its client is recorded.
func (term *Term) DropRadosClients(ctx context.Context, seen *model.RadosClients) error {
	s := term.store
	absent, err := s.withoutStream(ctx, seen.Gateway)
	if err != nil || absent == nil {
		return err
	}
	record := *seen
	record.Leaving = true
	if err := s.putRadosClients(ctx, &record, func(t *tx) { term.guard(t); absent(t) }); err != nil {
		return ignoreLost(err)
	}
	volumes, _, err := s.Volumes.All(ctx)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if seen.IsPartyOf(v) {
			return nil
		}
	}
	t := term.begin()
	t.compare(s.radosClientsAt(&record), nil)
	absent(t)
	t.delete(s.radosClientKey(seen.PoolUID, seen.Gateway))
	_, err = s.commit(ctx, t)
	return ignoreLost(err)
}

// withoutStream returns a comparison that an incarnation has no stream; nil if it has one.
func (s *Store) withoutStream(ctx context.Context, ref model.GatewayRef) (func(*tx), error) {
	gateways, _, err := s.Gateways.All(ctx)
	at := slices.IndexFunc(gateways, func(g *model.Gateway) bool { return g.Status.Number == ref.Number })
	if err != nil || at < 0 { // no process connects as a gateway that was removed
		return func(*tx) {}, err
	}
	key := s.connectionKey(gateways[at].Meta.Name)
	got, err := s.client.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	var revision int64
	for _, kv := range got.Kvs {
		var connection model.GatewayConnection
		if err := json.Unmarshal(kv.Value, &connection); err != nil {
			return nil, fmt.Errorf("%s in the store: %w", key, err)
		}
		if connection.Ref == ref {
			return nil, nil
		}
		revision = kv.ModRevision
	}
	return func(t *tx) { t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", revision), nil) }, nil
}

// ignoreLost ignores the loss against another writer, for changes that need no second attempt.
func ignoreLost(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}
