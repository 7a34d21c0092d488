package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Reports of gateways are written by the replica that has the gateway's stream, and read by the leader. Each record names its
// incarnation. It is stored only while the connection that writes it is the gateway's present one, so a replaced stream never
// stores outdated reports.

const (
	// ConnectionTTL is the time for which a gateway counts as connected after its last KeepAlive, if its replica died and could
	// not report the end of the stream. It is no safety bound, because a gateway is dead only if its peers confirm it (R1).
	ConnectionTTL = 3 * time.Second
	// UseInterval is the minimum time between two load reports. A gateway's load is stored before its LoadsInterval is over if a
	// volume comes into use, because a failover serves volumes in use first.
	UseInterval = 2 * time.Second
	// keptIncarnations bounds the replaced incarnations of a gateway that are remembered and refused.
	keptIncarnations = 64
	// observedBatch bounds the writes of one transaction, below etcd's default of 128.
	observedBatch = 100
)

// Errors of connections.
var (
	// ErrReplaced: another incarnation of the gateway has replaced it. A replaced incarnation never connects
	// again (R4: the process returns as a new one).
	ErrReplaced = errors.New("another incarnation of this gateway has taken its place")
	// ErrExpired: the connection was not kept alive in time, or another stream of the same process is the present connection. The gateway
	// must connect again.
	ErrExpired = errors.New("the connection was not kept alive in time, or another stream of the process has taken its place: connect again")
)

func (s *Store) observedPrefix() string { return s.prefix + "observed/" }

func (s *Store) connectionKey(gateway string) string {
	return s.observedPrefix() + "connection/" + gateway
}

func (s *Store) incarnationKey(gateway string) string { return s.prefix + "incarnations/" + gateway }

func (s *Store) volumeReportKey(uid string, gateway uint32) string {
	return fmt.Sprintf("%svolume/%s/%d", s.observedPrefix(), uid, gateway)
}

// WatchObserved reports every change of gateways' reports, as Collection.Watch does for objects.
func (s *Store) WatchObserved(ctx context.Context, after int64, tell func(RecordChange[model.Observed]) error) error {
	all := records[model.Observed]{s, s.observedPrefix(), func(key string, value []byte, version int64) (model.Observed, error) {
		return decodeObserved(strings.TrimPrefix(key, s.observedPrefix()), value, version)
	}}
	return all.watch(ctx, after, tell)
}

func decodeObserved(key string, value []byte, version int64) (model.Observed, error) {
	kind, _, _ := strings.Cut(key, "/")
	observed := model.Observed{Version: version}
	var into any
	switch kind {
	case "connection":
		observed.Connection = &model.GatewayConnection{}
		into = observed.Connection
	case "volume":
		observed.Volume = &model.VolumeReport{}
		into = observed.Volume
	case "peer":
		observed.Peer = &model.PeerReport{}
		into = observed.Peer
	case "pool":
		observed.Pool = &model.PoolReport{}
		into = observed.Pool
	case "load":
		observed.Load = &model.LoadReport{}
		into = observed.Load
	case "applied":
		observed.Applied = &model.AppliedReport{}
		into = observed.Applied
	default:
		return observed, fmt.Errorf("observed/%s in the store: a kind this program does not know", key)
	}
	if err := json.Unmarshal(value, into); err != nil {
		return observed, fmt.Errorf("observed/%s in the store: %w", key, err)
	}
	return observed, nil
}

// keyed is a record to be stored.
type keyed struct {
	key    string
	record any
	// always stores the record even if it is unchanged, because its revision matters.
	always bool
}

// observe stores records while the connection is the present one.
func (c *Connection) observe(ctx context.Context, all []keyed) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for batch := range slices.Chunk(all, observedBatch) {
		var t tx
		t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.mismatchError)
		values := map[string]string{}
		for _, entry := range batch {
			value, err := json.Marshal(entry.record)
			if err != nil {
				return err
			}
			if !entry.always && c.written[entry.key] == string(value) {
				continue
			}
			values[entry.key] = string(value)
			t.put(entry.key, string(value))
		}
		if len(values) == 0 {
			continue
		}
		if _, err := c.store.commit(ctx, &t); err != nil {
			return err
		}
		for key, value := range values {
			c.written[key] = value
		}
	}
	return nil
}

// ObserveVolumes stores the gateway's reports on volumes, by uid. Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObserveVolumes(ctx context.Context, observed map[string]model.VolumeObservation) error {
	var all []keyed
	for uid, observation := range observed {
		all = append(all, keyed{key: c.store.volumeReportKey(uid, c.Ref.Number),
			record: model.VolumeReport{UID: uid, Gateway: c.Ref, VolumeObservation: observation}})
	}
	return c.observe(ctx, all)
}

// ObservePeer stores whether the gateway reaches another incarnation. The caller calls it for every report: a report on an
// unreachable peer is stored each time, because the leader counts only reports of its own term (R1). Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObservePeer(ctx context.Context, report model.PeerReport) error {
	report.Reporter = c.Ref
	key := fmt.Sprintf("%speer/%d/%d", c.store.observedPrefix(), report.Peer.Number, c.Ref.Number)
	return c.observe(ctx, []keyed{{key: key, record: report, always: report.Reach != model.PeerConnected}})
}

// ObservePool stores the gateway's report on the pool report.UID. Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObservePool(ctx context.Context, report model.PoolReport) error {
	report.Gateway = c.Ref
	key := fmt.Sprintf("%spool/%s/%d", c.store.observedPrefix(), report.UID, c.Ref.Number)
	return c.observe(ctx, []keyed{{key: key, record: report}})
}

// ObserveLoads stores the gateway's load every LoadsInterval, or earlier if a volume comes into use. It drops the reports in
// between. Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObserveLoads(ctx context.Context, report model.LoadReport) error {
	now := c.store.now()
	c.mutex.Lock()
	c.unstoredUse = c.use.observe(report.Volumes, now) || c.unstoredUse
	interval := model.LoadsInterval
	if c.unstoredUse {
		interval = UseInterval
	}
	early := !c.loads.IsZero() && now.Sub(c.loads) < interval
	if !early {
		c.loads, c.unstoredUse = now, false
	}
	c.mutex.Unlock()
	if early {
		return nil
	}
	report.Gateway, report.At = c.Ref, now.UTC()
	key := fmt.Sprintf("%sload/%d", c.store.observedPrefix(), c.Ref.Number)
	return c.observe(ctx, []keyed{{key: key, record: report}})
}

// use has, for each volume of a connection, by uid, the transferred bytes and the time of the last transfer.
type use map[string]moved

type moved struct {
	bytes uint64
	at    time.Time
}

// observe records the loads of a heartbeat. It reports whether a volume came into use.
func (u *use) observe(volumes []model.VolumeLoad, now time.Time) bool {
	before, comes := *u, false
	*u = make(use, len(volumes))
	for _, l := range volumes {
		was := before[l.UID]
		if l.Bytes > was.bytes {
			comes = comes || was.at.IsZero() || now.Sub(was.at) > model.UsedFor
			was.at = now
		}
		(*u)[l.UID] = moved{l.Bytes, was.at}
	}
	return comes
}

// ForgetGateway deletes all reports by and about a gateway, including its sessions. The leader calls it before it removes the
// gateway. Errors: ErrDeposed.
func (term *Term) ForgetGateway(ctx context.Context, number uint32) error {
	s := term.store
	peers := fmt.Sprintf("%speer/%d/", s.observedPrefix(), number)
	by, applied := "/"+strconv.FormatUint(uint64(number), 10), s.appliedPrefix(number)
	gone := []clientv3.Op{
		clientv3.OpDelete(s.sessionKeyPrefix(number), clientv3.WithPrefix()),
		clientv3.OpDelete(s.evictionPrefix(number), clientv3.WithPrefix()),
		s.forgetHostFaults(number),
		s.forgetLiveLoad(number),
	}
	from, end := s.observedPrefix(), clientv3.GetPrefixRangeEnd(s.observedPrefix())
	connections := s.connectionKey("")
	for {
		got, err := s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(MaxPageSize), clientv3.WithKeysOnly())
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		for _, kv := range got.Kvs {
			key := string(kv.Key)
			from = key + "\x00"
			if !strings.HasPrefix(key, connections) && (strings.HasPrefix(key, peers) ||
				strings.HasPrefix(key, applied) || strings.HasSuffix(key, by)) {
				gone = append(gone, clientv3.OpDelete(key))
			}
		}
		if !got.More {
			break
		}
	}
	for batch := range slices.Chunk(gone, observedBatch) {
		t := term.begin()
		t.writes = batch
		if _, err := s.commit(ctx, t); err != nil {
			return err
		}
	}
	return nil
}
