package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Each gateway has one record of what hosts met there. It is overwritten, so peers cannot fill the store. It is not below
// observedPrefix, because replicas of earlier releases refuse unknown records there.

func (s *Store) hostFaultPrefix() string { return s.prefix + "host-faults/" }

func (s *Store) hostFaultKey(gateway uint32) string {
	return fmt.Sprintf("%s%d", s.hostFaultPrefix(), gateway)
}

func decodeHostFaults(key string, value []byte, _ int64) (*model.HostFaultReport, error) {
	report := &model.HostFaultReport{}
	if err := json.Unmarshal(value, report); err != nil {
		return nil, fmt.Errorf("%s in the store: %w", key, err)
	}
	return report, nil
}

// ObserveHostFaults stores what hosts met at the gateway, instead of the record before. Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObserveHostFaults(ctx context.Context, report model.HostFaultReport) error {
	report.Gateway = c.Ref
	return c.observe(ctx, []keyed{{key: c.store.hostFaultKey(c.Ref.Number), record: report}})
}

// HostFaults returns the record of a gateway; an empty one if there is none.
func (s *Store) HostFaults(ctx context.Context, gateway uint32) (*model.HostFaultReport, error) {
	got, err := s.client.Get(ctx, s.hostFaultKey(gateway))
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return &model.HostFaultReport{}, nil
	}
	return decodeHostFaults(string(got.Kvs[0].Key), got.Kvs[0].Value, got.Kvs[0].ModRevision)
}

// WatchHostFaults reports every change of the records, as Collection.Watch does for objects.
func (s *Store) WatchHostFaults(ctx context.Context, after int64, tell func(RecordChange[*model.HostFaultReport]) error) error {
	all := records[*model.HostFaultReport]{s, s.hostFaultPrefix(), func(key string, value []byte, version int64) (*model.HostFaultReport, error) {
		return decodeHostFaults(strings.TrimPrefix(key, s.prefix), value, version)
	}}
	return all.watch(ctx, after, tell)
}

func (s *Store) forgetHostFaults(gateway uint32) clientv3.Op {
	return clientv3.OpDelete(s.hostFaultKey(gateway))
}
