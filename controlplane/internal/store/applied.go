package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) appliedPrefix(gateway uint32) string {
	return fmt.Sprintf("%sapplied/%d/", s.observedPrefix(), gateway)
}

// ObserveApplied stores all reports of what the gateway has applied, and deletes those that are not in reports. Unchanged ones
// are not written. It sets Gateway in each. Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObserveApplied(ctx context.Context, reports []model.AppliedReport) error {
	if err := c.readApplied(ctx); err != nil {
		return err
	}
	prefix := c.store.appliedPrefix(c.Ref.Number)
	all := map[string]keyed{}
	for _, report := range reports {
		report.Gateway = c.Ref
		key := prefix + string(report.Kind) + "/" + report.UID
		all[key] = keyed{key: key, record: report}
	}
	if err := c.observe(ctx, slices.Collect(maps.Values(all))); err != nil {
		return err
	}
	return c.forgetApplied(ctx, all)
}

// readApplied reads, once, the reports that an earlier stream of the gateway stored, so that forgetApplied can delete them.
func (c *Connection) readApplied(ctx context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.applied != nil {
		return nil
	}
	got, err := c.store.client.Get(ctx, c.store.appliedPrefix(c.Ref.Number), clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	c.applied = map[string]bool{}
	for _, kv := range got.Kvs {
		c.applied[string(kv.Key)] = true
		c.written[string(kv.Key)] = string(kv.Value)
	}
	return nil
}

// forgetApplied deletes the stored reports that are not in now.
func (c *Connection) forgetApplied(ctx context.Context, now map[string]keyed) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var gone []string
	for key := range c.applied {
		if _, stays := now[key]; !stays {
			gone = append(gone, key)
		}
	}
	for key := range now {
		c.applied[key] = true
	}
	for batch := range slices.Chunk(gone, observedBatch) {
		var t tx
		t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.mismatchError)
		for _, key := range batch {
			t.delete(key)
		}
		if _, err := c.store.commit(ctx, &t); err != nil {
			return err
		}
		for _, key := range batch {
			delete(c.applied, key)
			delete(c.written, key)
		}
	}
	return nil
}
