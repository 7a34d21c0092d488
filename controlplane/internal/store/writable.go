package store

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Writable says whether the store takes writes of the connection: nil where it took one just now. That a lease is renewed says
// less: etcd without space does that too. Errors: ErrReplaced, ErrExpired, or why not.
func (c *Connection) Writable(ctx context.Context) error {
	key := fmt.Sprintf("%swritable/%d", c.store.prefix, c.Ref.Number)
	var t tx
	t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.why)
	// Under the lease: it goes when the stream ends.
	t.writes = append(t.writes, clientv3.OpPut(key, "", clientv3.WithLease(c.lease)))
	_, err := c.store.commit(ctx, &t)
	return err
}
