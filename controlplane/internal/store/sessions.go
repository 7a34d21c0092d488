package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) sessionPrefix() string { return s.prefix + "sessions/" }

func (s *Store) sessionKey(gateway, tsih uint32) string {
	return fmt.Sprintf("%s%d/%d", s.sessionPrefix(), gateway, tsih)
}

func (s *Store) evictionPrefix(gateway uint32) string {
	return fmt.Sprintf("%sevictions/%d/", s.prefix, gateway)
}

func decodeSession(key string, value []byte, version int64) (*model.Session, error) {
	session := &model.Session{Version: version}
	if err := json.Unmarshal(value, session); err != nil {
		return nil, fmt.Errorf("%s in the store: %w", key, err)
	}
	return session, nil
}

func (s *Store) sessionRecords() records[*model.Session] {
	return records[*model.Session]{s, s.sessionPrefix(), decodeSession}
}

// StoreSessions stores a gateway's report on its sessions. If full is set, put has all of them. A request to evict a session ends
// with the session. Errors: ErrReplaced, ErrExpired.
func (c *Connection) StoreSessions(ctx context.Context, full bool, put []*model.Session, ended []uint32) error {
	s := c.store
	if full {
		got, err := s.client.Get(ctx, s.sessionKeyPrefix(c.Ref.Number), clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		for _, kv := range got.Kvs {
			tsih, err := strconv.ParseUint(strings.TrimPrefix(string(kv.Key), s.sessionKeyPrefix(c.Ref.Number)), 10, 32)
			known := func(session *model.Session) bool { return uint64(session.TSIH) == tsih }
			if err == nil && !slices.ContainsFunc(put, known) {
				ended = append(ended, uint32(tsih))
			}
		}
	}
	var all []clientv3.Op
	for _, session := range put {
		session.GatewayNumber = c.Ref.Number
		value, err := json.Marshal(session)
		if err != nil {
			return err
		}
		all = append(all, clientv3.OpPut(s.sessionKey(c.Ref.Number, session.TSIH), string(value)))
	}
	for _, tsih := range ended {
		all = append(all, clientv3.OpDelete(s.sessionKey(c.Ref.Number, tsih)),
			clientv3.OpDelete(s.evictionPrefix(c.Ref.Number)+strconv.FormatUint(uint64(tsih), 10)))
	}
	for batch := range slices.Chunk(all, observedBatch) {
		var t tx
		t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.mismatchError)
		t.writes = batch
		if _, err := s.commit(ctx, &t); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sessionKeyPrefix(gateway uint32) string {
	return fmt.Sprintf("%s%d/", s.sessionPrefix(), gateway)
}

// Sessions returns the register of sessions, by gateway, and its version. Sessions of a dead gateway stay in it until the gateway
// reports again or is removed.
func (s *Store) Sessions(ctx context.Context) ([]*model.Session, int64, error) {
	var all []*model.Session
	version, err := s.sessionRecords().sendAll(ctx, func(change RecordChange[*model.Session]) error {
		if change.Type == Put {
			all = append(all, change.Record)
		}
		return nil
	})
	return all, version, err
}

// WatchSessions reports every change of the register, as Collection.Watch does for objects.
func (s *Store) WatchSessions(ctx context.Context, after int64, tell func(RecordChange[*model.Session]) error) error {
	return s.sessionRecords().watch(ctx, after, tell)
}

// EvictSession asks the gateway of a session to end it, for a user. A dry run only checks that the session exists. Errors:
// PreconditionError if the session has ended, even if another session has its number now.
func (s *Store) EvictSession(ctx context.Context, session *model.Session, dryRun bool) error {
	return s.evictSession(ctx, session, dryRun, func(*tx) {})
}

// EvictSession is Store.EvictSession for a decision of the leader. Further error: ErrDeposed.
func (term *Term) EvictSession(ctx context.Context, session *model.Session) error {
	return term.store.evictSession(ctx, session, false, term.guard)
}

func (s *Store) evictSession(ctx context.Context, session *model.Session, dryRun bool, guard func(*tx)) error {
	key := s.sessionKey(session.GatewayNumber, session.TSIH)
	wish := s.evictionPrefix(session.GatewayNumber) + strconv.FormatUint(uint64(session.TSIH), 10)
	return retry(ctx, func() error {
		got, err := s.client.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		over := model.Precondition("name", "session %s is over", session.Name())
		if len(got.Kvs) == 0 {
			return over
		}
		now, err := decodeSession(key, got.Kvs[0].Value, got.Kvs[0].ModRevision)
		if err != nil {
			return err
		}
		if !now.Same(session) {
			return over
		}
		if dryRun {
			return nil
		}
		var t tx
		guard(&t)
		t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", now.Version), nil)
		t.put(wish, session.ISID)
		_, err = s.commit(ctx, &t)
		return err
	})
}

// WatchEvictions reports the sessions of a gateway that must end, by TSIH: first the present ones, then each new one.
func (s *Store) WatchEvictions(ctx context.Context, gateway uint32, tell func([]uint32) error) error {
	prefix := s.evictionPrefix(gateway)
	wishes := records[uint32]{s, prefix, func(key string, _ []byte, _ int64) (uint32, error) {
		tsih, err := strconv.ParseUint(strings.TrimPrefix(key, prefix), 10, 32)
		return uint32(tsih), err
	}}
	return wishes.watch(ctx, 0, func(change RecordChange[uint32]) error {
		if change.Type == Put {
			return tell([]uint32{change.Record})
		}
		return nil
	})
}
