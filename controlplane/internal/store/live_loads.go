package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Live loads are stored only while a replica asks for them, because they change all the time. They are not below observedPrefix, because
// replicas of earlier releases refuse unknown records there.

func (s *Store) liveLoadPrefix() string { return s.prefix + "live-loads/gateways/" }

func (s *Store) liveLoadKey(gateway uint32) string {
	return fmt.Sprintf("%s%d", s.liveLoadPrefix(), gateway)
}

func (s *Store) liveLoadRequestKey() string { return s.prefix + "live-loads/request" }

// RequestLiveLoads has every replica store the live loads of its gateways for model.LiveLoadWanted.
func (s *Store) RequestLiveLoads(ctx context.Context) error {
	// The value only makes the record differ. Replicas measure the time since they received it by their own clocks.
	if _, err := s.client.Put(ctx, s.liveLoadRequestKey(), s.now().UTC().Format(time.RFC3339Nano)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// WatchLiveLoadRequests calls tell for each request for live loads from now on.
func (s *Store) WatchLiveLoadRequests(ctx context.Context, tell func()) error {
	version, err := s.Revision(ctx)
	if err != nil {
		return err
	}
	return s.follow(ctx, s.liveLoadRequestKey(), &version, func(*clientv3.Event, int64) error {
		tell()
		return nil
	}, func(int64) error { return nil })
}

// ObserveLiveLoad stores the live load of the gateway instead of the one before. Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObserveLiveLoad(ctx context.Context, load model.LiveLoad) error {
	load.Gateway = c.Ref
	return c.observe(ctx, []keyed{{key: c.store.liveLoadKey(c.Ref.Number), record: load}})
}

// WatchLiveLoads reports every change of the live loads, as Collection.Watch does for objects.
func (s *Store) WatchLiveLoads(ctx context.Context, after int64, tell func(RecordChange[*model.LiveLoad]) error) error {
	all := records[*model.LiveLoad]{s, s.liveLoadPrefix(), func(key string, value []byte, _ int64) (*model.LiveLoad, error) {
		load := &model.LiveLoad{}
		if err := json.Unmarshal(value, load); err != nil {
			return nil, fmt.Errorf("%s in the store: %w", strings.TrimPrefix(key, s.prefix), err)
		}
		return load, nil
	}}
	return all.watch(ctx, after, tell)
}

func (s *Store) forgetLiveLoad(gateway uint32) clientv3.Op {
	return clientv3.OpDelete(s.liveLoadKey(gateway))
}
