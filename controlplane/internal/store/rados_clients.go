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

const (
	// MaxRadosClients of one incarnation for one pool: each that is blocklisted is followed by another. A process that has
	// used so many is to be started anew.
	MaxRadosClients = 64
	// maxRadosClientName bounds the addresses of one, in bytes.
	maxRadosClientName = 255
)

// ErrTooManyClients: this incarnation has used MaxRadosClients in this pool.
var ErrTooManyClients = errors.New("this process has used too many clients of Ceph: start it anew")

// ErrClientFenced: this client has been shut out.
var ErrClientFenced = errors.New("this client of Ceph has been blocklisted: come back as another one")

// RadosClients are the clients of a Ceph cluster by which an incarnation of a gateway has opened images of a pool, or may: all
// that have to be blocklisted before anybody takes over from it (R2). A client is recorded before it opens anything.
type RadosClients struct {
	PoolUID string           `json:"poolUID"`
	Gateway model.GatewayRef `json:"gateway"`
	// Clients in the order in which they came.
	Clients []RadosClient `json:"clients"`
	// Leaving says that the record is about to be forgotten: its incarnation is given nothing, unless it is back.
	Leaving bool `json:"leaving,omitempty"`
	// Version is the store's.
	Version int64 `json:"-"`
}

// RadosClient is one of them.
type RadosClient struct {
	// Client as a blocklist names it: addresses and nonce.
	Client string `json:"client"`
	// Fenced says that it is known to be blocklisted.
	Fenced bool `json:"fenced,omitempty"`
}

// Open are the clients that are not fenced, Fenced those that are; All are all.
func (r *RadosClients) Open() []string {
	var open []string
	for _, c := range r.Clients {
		if !c.Fenced {
			open = append(open, c.Client)
		}
	}
	return open
}

// Fenced are the clients that are known to be blocklisted.
func (r *RadosClients) Fenced() []string {
	var fenced []string
	for _, c := range r.Clients {
		if c.Fenced {
			fenced = append(fenced, c.Client)
		}
	}
	return fenced
}

// All are the names of all clients.
func (r *RadosClients) All() []string {
	all := make([]string, 0, len(r.Clients))
	for _, c := range r.Clients {
		all = append(all, c.Client)
	}
	return all
}

func (s *Store) radosClientPrefix() string { return s.prefix + "rados-clients/" }

func (s *Store) radosClientKey(pool string, gateway model.GatewayRef) string {
	return fmt.Sprintf("%s%s/%d/%s", s.radosClientPrefix(), pool, gateway.Number, gateway.Incarnation)
}

func decodeRadosClients(key string, value []byte, version int64) (*RadosClients, error) {
	record := &RadosClients{Version: version}
	if err := json.Unmarshal(value, record); err != nil {
		return nil, fmt.Errorf("%s in the store: %w", key, err)
	}
	return record, nil
}

// WatchRadosClients tells every change of them, as Collection.Watch does of objects.
func (s *Store) WatchRadosClients(ctx context.Context, after int64, tell func(RecordChange[*RadosClients]) error) error {
	return records[*RadosClients]{s, s.radosClientPrefix(), decodeRadosClients}.watch(ctx, after, tell)
}

// RecordRadosClient records a client of the connected incarnation for a pool; nil says that it is, and was not fenced until
// then. Errors: ErrClientFenced, ErrTooManyClients, ErrReplaced, ErrExpired, ErrBusy.
func (c *Connection) RecordRadosClient(ctx context.Context, pool, client string) error {
	if client == "" || len(client) > maxRadosClientName || pool == "" {
		return model.Precondition("client", "%.300q of pool %q is no client of Ceph", client, pool)
	}
	s, key := c.store, c.store.radosClientKey(pool, c.Ref)
	return retry(ctx, func() error {
		record := &RadosClients{PoolUID: pool, Gateway: c.Ref}
		got, err := s.client.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if len(got.Kvs) > 0 {
			if record, err = decodeRadosClients(key, got.Kvs[0].Value, got.Kvs[0].ModRevision); err != nil {
				return err
			}
		}
		at := slices.IndexFunc(record.Clients, func(known RadosClient) bool { return known.Client == client })
		switch {
		case at >= 0 && record.Clients[at].Fenced:
			return ErrClientFenced
		case at >= 0 && !record.Leaving:
			return nil
		case at < 0 && len(record.Clients) >= MaxRadosClients:
			return ErrTooManyClients
		}
		if record.Leaving = false; at < 0 {
			record.Clients = append(record.Clients, RadosClient{Client: client})
		}
		return s.putRadosClients(ctx, record, func(t *tx) {
			t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.why)
		})
	})
}

// FenceRadosClients notes that clients of a record, as it was seen, are blocklisted. Errors: ErrBusy where it has changed.
func (s *Store) FenceRadosClients(ctx context.Context, seen *RadosClients, clients []string) (*RadosClients, error) {
	record := *seen
	record.Clients = slices.Clone(seen.Clients)
	for i, c := range record.Clients {
		record.Clients[i].Fenced = c.Fenced || slices.Contains(clients, c.Client)
	}
	err := s.putRadosClients(ctx, &record, func(*tx) {})
	if errors.Is(err, errLost) {
		return nil, ErrBusy
	}
	return &record, err
}

func (s *Store) putRadosClients(ctx context.Context, record *RadosClients, guard func(*tx)) error {
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
func (s *Store) radosClientsAt(seen *RadosClients) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.radosClientKey(seen.PoolUID, seen.Gateway)), "=", seen.Version)
}

// DropRadosClients forgets a record, as it was seen: of an incarnation that is gone and that nobody takes over from any more.
// It is marked first, so that no volume is given to its incarnation by who has seen it before; whoever was given one meanwhile
// keeps it, or it could never be shut out. Of one that has a stream nothing is forgotten: records and streams are heard of apart,
// and it would take itself for recorded.
func (s *Store) DropRadosClients(ctx context.Context, seen *RadosClients) error {
	absent, err := s.withoutStream(ctx, seen.Gateway)
	if err != nil || absent == nil {
		return err
	}
	record := *seen
	record.Leaving = true
	if err := s.putRadosClients(ctx, &record, absent); err != nil {
		return unlessLost(err)
	}
	volumes, _, err := s.Volumes.All(ctx)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if o := v.Status.Ownership; o.Owner == seen.Gateway || o.Next == seen.Gateway || o.Fence == seen.Gateway {
			return nil
		}
	}
	var t tx
	t.compare(s.radosClientsAt(&record), nil)
	absent(&t)
	t.delete(s.radosClientKey(seen.PoolUID, seen.Gateway))
	_, err = s.commit(ctx, &t)
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
		var connection GatewayConnection
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
