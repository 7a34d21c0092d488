package main

import (
	"context"
	"errors"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// readiness says whether the store answers this process. It can be asked before there is a store.
type readiness struct {
	client atomic.Pointer[clientv3.Client]
}

func (r *readiness) check(ctx context.Context) error {
	client := r.client.Load()
	if client == nil {
		return errors.New("it is not open yet")
	}
	_, err := client.Get(ctx, "sluice-probe", clientv3.WithKeysOnly())
	return err
}
