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

// What gateways observe, written by whichever replica holds a gateway's stream and read by the leader. Each record
// names the incarnation it is from, and is stored only while the connection that writes it is the gateway's present
// one: what a replaced stream still has in hand is never taken for news.

const (
	// ConnectionTTL is how long a gateway counts as connected after its last KeepAlive, where its replica died and could not
	// say that the stream ended. Death needs the peers' word as well (R1), so it is no safety bound.
	ConnectionTTL = 3 * time.Second
	// UseInterval is between two load reports at least. A gateway's load is stored before its LoadsInterval is over where a volume
	// comes into use: a failover serves the volumes in use first.
	UseInterval = 2 * time.Second
	// keptIncarnations bounds how many replaced incarnations of a gateway are remembered, and refused.
	keptIncarnations = 64
	// observedBatch bounds the writes of one transaction, below etcd's default of 128.
	observedBatch = 100
)

// Errors of connections.
var (
	// ErrReplaced: another incarnation of the gateway, or another stream of it, has taken its place. An incarnation that
	// was replaced never connects again (R4: it re-enters as a new one).
	ErrReplaced = errors.New("another incarnation or stream of this gateway has taken its place")
	// ErrExpired: the connection was not kept alive in time. Connect again.
	ErrExpired = errors.New("the connection was not kept alive in time and has expired: connect again")
)

func (s *Store) observedPrefix() string { return s.prefix + "observed/" }

func (s *Store) connectionKey(gateway string) string {
	return s.observedPrefix() + "connection/" + gateway
}

func (s *Store) incarnationKey(gateway string) string { return s.prefix + "incarnations/" + gateway }

func (s *Store) volumeReportKey(uid string, gateway uint32) string {
	return fmt.Sprintf("%svolume/%s/%d", s.observedPrefix(), uid, gateway)
}

// WatchObserved tells every change of what gateways observe, as Collection.Watch does of objects.
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
	// always stores it again even if it reads the same: its revision is news.
	always bool
}

// observe stores records while the connection is the present one.
func (c *Connection) observe(ctx context.Context, all []keyed) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for batch := range slices.Chunk(all, observedBatch) {
		var t tx
		t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.why)
		said := map[string]string{}
		for _, entry := range batch {
			value, err := json.Marshal(entry.record)
			if err != nil {
				return err
			}
			if !entry.always && c.written[entry.key] == string(value) {
				continue
			}
			said[entry.key] = string(value)
			t.put(entry.key, string(value))
		}
		if len(said) == 0 {
			continue
		}
		if _, err := c.store.commit(ctx, &t); err != nil {
			return err
		}
		for key, value := range said {
			c.written[key] = value
		}
	}
	return nil
}

// ObserveVolumes stores what the gateway says of volumes, by uid. Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObserveVolumes(ctx context.Context, observed map[string]model.VolumeObservation) error {
	var all []keyed
	for uid, observation := range observed {
		all = append(all, keyed{key: c.store.volumeReportKey(uid, c.Ref.Number),
			record: model.VolumeReport{UID: uid, Gateway: c.Ref, VolumeObservation: observation}})
	}
	return c.observe(ctx, all)
}

// ObservePeer stores how the gateway finds another incarnation. A peer that it does not reach is news each time: the
// leader counts only what was said in its own term (R1), so call it for every report.
func (c *Connection) ObservePeer(ctx context.Context, peer model.GatewayRef, reach model.Reach, silent time.Duration) error {
	key := fmt.Sprintf("%speer/%d/%d", c.store.observedPrefix(), peer.Number, c.Ref.Number)
	return c.observe(ctx, []keyed{{key: key, record: model.PeerReport{Reporter: c.Ref, Peer: peer, Reach: reach, Silent: silent},
		always: reach != model.PeerConnected}})
}

// ObservePool stores what the gateway says of a pool; uid says which.
func (c *Connection) ObservePool(ctx context.Context, report model.PoolReport) error {
	report.Gateway = c.Ref
	key := fmt.Sprintf("%spool/%s/%d", c.store.observedPrefix(), report.UID, c.Ref.Number)
	return c.observe(ctx, []keyed{{key: key, record: report}})
}

// ObserveLoads stores the gateway's load every LoadsInterval, or earlier where a volume comes into use, and drops what comes between.
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

// use is what the volumes of a connection have moved, and when they did last, by UID.
type use map[string]moved

type moved struct {
	bytes uint64
	at    time.Time
}

// observe takes up what a heartbeat says, and says whether a volume is in use that was not.
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

// ForgetGateway deletes everything observed by a gateway and of it, its sessions included. The leader calls it before it removes the
// gateway. Errors: ErrDeposed.
func (term *Term) ForgetGateway(ctx context.Context, number uint32) error {
	s := term.store
	peers := fmt.Sprintf("%speer/%d/", s.observedPrefix(), number)
	by, applied := "/"+strconv.FormatUint(uint64(number), 10), s.appliedPrefix(number)
	gone := []clientv3.Op{
		clientv3.OpDelete(s.sessionKeyPrefix(number), clientv3.WithPrefix()),
		clientv3.OpDelete(s.evictionPrefix(number), clientv3.WithPrefix()),
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
