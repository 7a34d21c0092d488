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

// WatchRadosClients tells every change of them, as Collection.Watch does of objects.
func (s *Store) WatchRadosClients(ctx context.Context, after int64, tell func(RecordChange[*model.RadosClients]) error) error {
	return records[*model.RadosClients]{s, s.radosClientPrefix(), decodeRadosClients}.watch(ctx, after, tell)
}

// RecordRadosClient records a client of the connected incarnation for a pool; nil says that it is, and was not fenced until
// then. Errors: ErrClientFenced, ErrTooManyClients, ErrReplaced, ErrExpired, ErrBusy.
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
			t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.why)
		})
	})
}

// FenceRadosClients notes that clients of a record, as it was seen, are blocklisted. Errors: ErrBusy where it has changed.
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

// radosClientsAt compares that a record is what it was.
func (s *Store) radosClientsAt(seen *model.RadosClients) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.radosClientKey(seen.PoolUID, seen.Gateway)), "=", seen.Version)
}

// DropRadosClients forgets a record, as it was seen: of an incarnation that is gone and that nobody takes over from any more.
// It is marked first, so that no volume is given to its incarnation by who has seen it before; whoever was given one meanwhile
// keeps it, or it could never be shut out. Of one that has a stream nothing is forgotten: records and streams are heard of apart,
// and it would take itself for recorded.
func (term *Term) DropRadosClients(ctx context.Context, seen *model.RadosClients) error {
	s := term.store
	absent, err := s.withoutStream(ctx, seen.Gateway)
	if err != nil || absent == nil {
		return err
	}
	record := *seen
	record.Leaving = true
	if err := s.putRadosClients(ctx, &record, func(t *tx) { term.guard(t); absent(t) }); err != nil {
		return unlessLost(err)
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
	return unlessLost(err)
}

// withoutStream compares that an incarnation has no stream; nil where it has one.
func (s *Store) withoutStream(ctx context.Context, ref model.GatewayRef) (func(*tx), error) {
	gateways, _, err := s.Gateways.All(ctx)
	at := slices.IndexFunc(gateways, func(g *model.Gateway) bool { return g.Status.Number == ref.Number })
	if err != nil || at < 0 { // nobody connects as a gateway that was removed
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

// unlessLost is the error of what is not worth a second attempt where somebody else was faster.
func unlessLost(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}
