package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// incarnations records which processes were a gateway, so that a replaced process stays replaced.
type incarnations struct {
	Present  string   `json:"present"`
	Replaced []string `json:"replaced,omitempty"`
}

// Connection is a gateway's stream at its replica. Its methods are safe for concurrent use.
type Connection struct {
	store *Store
	lease clientv3.LeaseID
	key   string
	// Ref is the gateway's number and the incarnation that is connected.
	Ref model.GatewayRef

	mutex sync.Mutex
	// written has the value that was stored last, by key, so that an unchanged value is not written again.
	written map[string]string
	// applied are the stored keys of reports on applied objects; nil before they were read.
	applied map[string]bool
	// loads is the time at which loads were stored last.
	loads time.Time
	// use covers all heartbeats. unstoredUse: a volume came into use since loads were stored.
	use         use
	unstoredUse bool
}

// ConnectGateway records that a gateway has a stream: it is connected until Close, or until KeepAlive was not called for
// ConnectionTTL. It replaces any other connection of the gateway. Errors: NotFoundError, ErrReplaced, ErrBusy.
func (s *Store) ConnectGateway(ctx context.Context, gateway string, as model.GatewayConnection) (*Connection, error) {
	object, err := s.Gateways.Get(ctx, gateway)
	if err != nil {
		return nil, err
	}
	as.Gateway, as.Ref.Number, as.Since = gateway, object.Status.Number, s.now().UTC()
	if as.Ref.Incarnation == "" {
		return nil, model.Precondition("incarnation", "is missing: each start of a gateway makes a new one")
	}
	value, err := json.Marshal(as)
	if err != nil {
		return nil, err
	}
	lease, err := s.client.Grant(ctx, int64(ConnectionTTL/time.Second))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	c := &Connection{store: s, lease: lease.ID, key: s.connectionKey(gateway), Ref: as.Ref, written: map[string]string{}}
	err = retry(ctx, func() error {
		var t tx
		t.compare(present(s.Gateways.key(gateway)), func(ctx context.Context) error {
			_, err := s.Gateways.Get(ctx, gateway)
			return err
		})
		if err := s.makePresent(ctx, &t, gateway, as.Ref.Incarnation); err != nil {
			return err
		}
		t.writes = append(t.writes, clientv3.OpPut(c.key, string(value), clientv3.WithLease(lease.ID)))
		_, err := s.commit(ctx, &t)
		return err
	})
	if err != nil {
		_, _ = s.client.Revoke(context.WithoutCancel(ctx), lease.ID) // no key depends on it; if this fails, it expires
		return nil, err
	}
	return c, nil
}

// makePresent makes an incarnation the present one, unless it was replaced before.
func (s *Store) makePresent(ctx context.Context, t *tx, gateway, incarnation string) error {
	key := s.incarnationKey(gateway)
	got, err := s.client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	var kept incarnations
	var revision int64
	if len(got.Kvs) > 0 {
		revision = got.Kvs[0].ModRevision
		if err := json.Unmarshal(got.Kvs[0].Value, &kept); err != nil {
			return fmt.Errorf("%s in the store: %w", key, err)
		}
	}
	t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", revision), nil)
	switch {
	case slices.Contains(kept.Replaced, incarnation):
		return ErrReplaced
	case kept.Present == incarnation:
		return nil
	case kept.Present != "":
		kept.Replaced = append(kept.Replaced, kept.Present)
		kept.Replaced = kept.Replaced[max(0, len(kept.Replaced)-keptIncarnations):]
	}
	kept.Present = incarnation
	value, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	t.put(key, string(value))
	return nil
}

// KeepAlive records that the gateway is alive. The caller calls it for every heartbeat. Errors: ErrReplaced, ErrExpired; after
// either the stream must end. Any other error does not change the connection.
func (c *Connection) KeepAlive(ctx context.Context) error {
	if _, err := c.store.client.KeepAliveOnce(ctx, c.lease); errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return cmp.Or(c.mismatchError(ctx), ErrExpired)
	} else if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return c.mismatchError(ctx)
}

// Close records that the stream has ended. It never affects the connection of another stream.
func (c *Connection) Close(ctx context.Context) error {
	// The key is deleted with the lease if it is still attached to it. A connection that replaced this one has another lease.
	_, err := c.store.client.Revoke(ctx, c.lease)
	if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// mismatchError returns why a connection is no longer the present one; nil if it is, and another comparison failed.
func (c *Connection) mismatchError(ctx context.Context) error {
	got, err := c.store.client.Get(ctx, c.key)
	switch {
	case err != nil:
		return fmt.Errorf("store: %w", err)
	case len(got.Kvs) == 0:
		return ErrExpired
	case clientv3.LeaseID(got.Kvs[0].Lease) == c.lease:
		return nil
	}
	var present model.GatewayConnection
	if err := json.Unmarshal(got.Kvs[0].Value, &present); err != nil {
		return fmt.Errorf("%s in the store: %w", c.key, err)
	}
	// The present one can also be an earlier stream of the same process: etcd executes a request that waited in a member which hung. The
	// process must not end because of that.
	if present.Ref.Incarnation == c.Ref.Incarnation {
		return ErrExpired
	}
	return ErrReplaced
}
