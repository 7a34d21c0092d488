package store

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// attempts bounds how often a change is repeated because other writers came first.
const attempts = 16

// tx gathers the comparisons and writes of a change. It is committed as a whole or not at all.
type tx struct {
	compares []clientv3.Cmp
	writes   []clientv3.Op
	// causes explain why a comparison failed. If the transaction did not succeed, they are called in order. A cause that finds
	// nothing wrong returns nil.
	causes []func(context.Context) error
	// grouped: it may be sent to etcd in one request with others, and then has their revision.
	grouped bool
}

// errLost means that another writer came first and nothing else is wrong.
var errLost = errors.New("lost against another writer")

func (t *tx) compare(c clientv3.Cmp, cause func(context.Context) error) {
	t.compares = append(t.compares, c)
	if cause != nil {
		t.causes = append(t.causes, cause)
	}
}

func (t *tx) put(key, value string) { t.writes = append(t.writes, clientv3.OpPut(key, value)) }

func (t *tx) delete(key string) { t.writes = append(t.writes, clientv3.OpDelete(key)) }

func (t *tx) deleteAll(prefix string) {
	t.writes = append(t.writes, clientv3.OpDelete(prefix, clientv3.WithPrefix()))
}

// commit returns the revision, errLost, or the cause of a comparison that failed permanently, such as ErrDeposed in a transaction
// of a Term.
func (s *Store) commit(ctx context.Context, t *tx) (int64, error) {
	revision, succeeded, err := s.send(ctx, t)
	if err != nil {
		return 0, committing(err)
	}
	if succeeded {
		return revision, nil
	}
	for _, cause := range t.causes {
		if err := cause(ctx); err != nil {
			return 0, err
		}
	}
	return 0, errLost
}

func (s *Store) send(ctx context.Context, t *tx) (revision int64, succeeded bool, err error) {
	if t.grouped {
		return s.groups.commit(ctx, t.compares, t.writes)
	}
	done, err := s.client.Txn(ctx).If(t.compares...).Then(t.writes...).Commit()
	if err != nil {
		return 0, false, err
	}
	return done.Header.Revision, done.Succeeded, nil
}

// Limits with which an external etcd must be started for the largest objects. The embedded etcd has them. In operations and
// bytes.
const (
	neededTxnOps       = 16384
	neededRequestBytes = 8 << 20
)

// committing returns why a transaction failed. etcd refuses a transaction that exceeds its limits until an administrator restarts
// etcd with higher ones.
func committing(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps):
		return &EtcdLimitError{Flag: "--max-txn-ops", Needed: neededTxnOps, Cause: err}
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return &EtcdLimitError{Flag: "--max-request-bytes", Needed: neededRequestBytes, Cause: err}
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("store: %w: an embedded etcd makes room by itself; defragment an external one, then `etcdctl alarm disarm`", err)
	}
	return fmt.Errorf("store: %w", err)
}

// absent compares that no key begins with prefix.
func absent(prefix string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix()
}

// missing compares that a key does not exist; present that it does.
func missing(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}

func present(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), ">", 0)
}

// retry repeats a change while it only loses against other writers, up to `attempts` times.
func retry(ctx context.Context, change func() error) error {
	for range attempts {
		err := change()
		if !errors.Is(err, errLost) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return ErrBusy
}
