package etcdtest

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/etcd"
)

// BeforeCommit is a connection to etcd that calls Before ahead of each transaction. Before may change the store, or wait.
type BeforeCommit struct {
	clientv3.KV
	Before func()
}

// Txn implements clientv3.KV.
func (b *BeforeCommit) Txn(ctx context.Context) clientv3.Txn {
	return etcd.AroundCommit(b.KV.Txn(ctx), func(commit etcd.Commit) (*clientv3.TxnResponse, error) {
		b.Before()
		return commit()
	})
}
