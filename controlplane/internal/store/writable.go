package store

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Writable returns nil if the store has just accepted a write of the connection. The renewal of a lease proves less, because an
// etcd without space also renews leases. Errors: ErrReplaced, ErrExpired, or the reason.
func (c *Connection) Writable(ctx context.Context) error {
	key := fmt.Sprintf("%swritable/%d", c.store.prefix, c.Ref.Number)
	var t tx
	t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.mismatchError)
	// The key is attached to the lease: it is deleted when the stream ends.
	t.writes = append(t.writes, clientv3.OpPut(key, "", clientv3.WithLease(c.lease)))
	_, err := c.store.commit(ctx, &t)
	return err
}
