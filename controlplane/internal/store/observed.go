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
	// LoadsInterval is how often the loads of a connection are stored; what comes between is dropped, unless a volume is in use that
	// was not: whoever decides on a failover should know. But never are they stored more often than every UseInterval.
	LoadsInterval = 15 * time.Second
	UseInterval   = 2 * time.Second
	// UsedFor is how long a volume counts as in use after it was read or written last.
	UsedFor = time.Minute
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

// GatewayConnection says that a gateway has a stream, to which replica, and which process it is.
type GatewayConnection struct {
	// Gateway by name, and the incarnation that is connected. The number is set by ConnectGateway.
	Gateway string           `json:"gateway"`
	Ref     model.GatewayRef `json:"ref"`
	Replica string           `json:"replica,omitempty"`
	Node    string           `json:"node,omitempty"`
	// BootID, PID and PIDStartTime name the process for a SIGKILL through a pidfd (R2, local).
	BootID       string    `json:"bootID,omitempty"`
	PID          int64     `json:"pid,omitempty"`
	PIDStartTime uint64    `json:"pidStartTime,omitempty"`
	Version      string    `json:"version,omitempty"`
	Capabilities []string  `json:"capabilities,omitempty"`
	Since        time.Time `json:"since"`
}

// ObservedState is what a gateway says of a volume.
type ObservedState string

// The states, as in gateway_stream.proto.
const (
	VolumeServing  ObservedState = "Serving"
	VolumeReleased ObservedState = "Released"
	VolumeFailed   ObservedState = "Failed"
	VolumeFenced   ObservedState = "Fenced"
	VolumeLocked   ObservedState = "Locked"
)

// VolumeObservation is what a gateway reports of a volume.
type VolumeObservation struct {
	Epoch uint64 `json:"epoch"`
	// Order that it acted on (Ownership.Order).
	Order  uint64        `json:"order"`
	State  ObservedState `json:"state"`
	Reason string        `json:"reason,omitempty"`
	// CapacityBytes is 0 where it isn't known, AllocatedBytes -1.
	CapacityBytes  int64 `json:"capacityBytes"`
	AllocatedBytes int64 `json:"allocatedBytes"`
}

// VolumeReport is a VolumeObservation as it is stored: one for each volume and gateway.
type VolumeReport struct {
	UID     string           `json:"uid"`
	Gateway model.GatewayRef `json:"gateway"`
	VolumeObservation
}

// Reach is how a gateway finds another one.
type Reach string

// The ways.
const (
	PeerConnected Reach = "Connected"
	PeerRefused   Reach = "Refused"
	PeerSilent    Reach = "Silent"
)

// PeerReport is how a gateway finds another one over the forwarding network: one for each pair.
type PeerReport struct {
	Reporter model.GatewayRef `json:"reporter"`
	Peer     model.GatewayRef `json:"peer"`
	Reach    Reach            `json:"reach"`
	// Silent is how long the reporter had heard nothing, by its own clock, when it said so.
	Silent time.Duration `json:"silent,omitempty"`
}

// PoolReport is what a gateway reports of a storage pool: one for each pool and gateway.
type PoolReport struct {
	UID                string           `json:"uid"`
	Gateway            model.GatewayRef `json:"gateway"`
	CapacityBytes      int64            `json:"capacityBytes"`
	UsedBytes          int64            `json:"usedBytes"`
	SnapshotsSupported bool             `json:"snapshotsSupported"`
	// Problem is empty where the pool is well.
	Problem string `json:"problem,omitempty"`
	// UnusableDevices of the pool, each with why and the mend.
	UnusableDevices []string `json:"unusableDevices,omitempty"`
	// TakenOut of the pool are devices that hold data, by its location.
	TakenOut map[string]string `json:"takenOut,omitempty"`
	// Marker that the gateway found or wrote, and the adoptions that it counts; empty: none.
	Marker    string `json:"marker,omitempty"`
	Adoptions uint32 `json:"adoptions,omitempty"`
	// Unidentified: Problem says that this may be other storage than the pool's.
	Unidentified bool `json:"unidentified,omitempty"`
	// MaxImageBytes is the largest size of an image; 0: not known.
	MaxImageBytes int64 `json:"maxImageBytes,omitempty"`
	// ListsImages: the gateway does ListImages in this pool. Those of earlier versions do it in pools of Ceph and of devices.
	ListsImages bool `json:"listsImages,omitempty"`
}

// VolumeLoad counts since the gateway opened the volume.
type VolumeLoad struct {
	UID      string `json:"uid"`
	Commands uint64 `json:"commands"`
	Bytes    uint64 `json:"bytes"`
}

// LoadReport is a gateway's load: one for each gateway.
type LoadReport struct {
	Gateway      model.GatewayRef `json:"gateway"`
	Sessions     uint32           `json:"sessions"`
	BusyPermille uint32           `json:"busyPermille"`
	// AppliedVersion of the desired state.
	AppliedVersion uint64       `json:"appliedVersion,omitempty"`
	Volumes        []VolumeLoad `json:"volumes,omitempty"`
	// At is when the replica heard it, to make rates of two reports of the same incarnation.
	At time.Time `json:"at"`
}

// Observed is one record: exactly one of the pointers is set.
type Observed struct {
	// Version is the record's revision in the store: of two, the greater is the later, whoever wrote them.
	Version    int64
	Connection *GatewayConnection
	Volume     *VolumeReport
	Peer       *PeerReport
	Pool       *PoolReport
	Load       *LoadReport
	Applied    *AppliedReport
}

func (s *Store) observedPrefix() string { return s.prefix + "observed/" }

func (s *Store) connectionKey(gateway string) string {
	return s.observedPrefix() + "connection/" + gateway
}

func (s *Store) incarnationKey(gateway string) string { return s.prefix + "incarnations/" + gateway }

func (s *Store) volumeReportKey(uid string, gateway uint32) string {
	return fmt.Sprintf("%svolume/%s/%d", s.observedPrefix(), uid, gateway)
}

// WatchObserved tells every change of what gateways observe, as Collection.Watch does of objects.
func (s *Store) WatchObserved(ctx context.Context, after int64, tell func(RecordChange[Observed]) error) error {
	all := records[Observed]{s, s.observedPrefix(), func(key string, value []byte, version int64) (Observed, error) {
		return decodeObserved(strings.TrimPrefix(key, s.observedPrefix()), value, version)
	}}
	return all.watch(ctx, after, tell)
}

func decodeObserved(key string, value []byte, version int64) (Observed, error) {
	kind, _, _ := strings.Cut(key, "/")
	observed := Observed{Version: version}
	var into any
	switch kind {
	case "connection":
		observed.Connection = &GatewayConnection{}
		into = observed.Connection
	case "volume":
		observed.Volume = &VolumeReport{}
		into = observed.Volume
	case "peer":
		observed.Peer = &PeerReport{}
		into = observed.Peer
	case "pool":
		observed.Pool = &PoolReport{}
		into = observed.Pool
	case "load":
		observed.Load = &LoadReport{}
		into = observed.Load
	case "applied":
		observed.Applied = &AppliedReport{}
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
			if !entry.always && c.told[entry.key] == string(value) {
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
			c.told[key] = value
		}
	}
	return nil
}

// ObserveVolumes stores what the gateway says of volumes, by uid. Errors: ErrReplaced, ErrExpired.
func (c *Connection) ObserveVolumes(ctx context.Context, observed map[string]VolumeObservation) error {
	var all []keyed
	for uid, observation := range observed {
		all = append(all, keyed{key: c.store.volumeReportKey(uid, c.Ref.Number),
			record: VolumeReport{uid, c.Ref, observation}})
	}
	return c.observe(ctx, all)
}

// ObservePeer stores how the gateway finds another incarnation. A peer that it does not reach is news each time: the
// leader counts only what was said in its own term (R1), so call it for every report.
func (c *Connection) ObservePeer(ctx context.Context, peer model.GatewayRef, reach Reach, silent time.Duration) error {
	key := fmt.Sprintf("%speer/%d/%d", c.store.observedPrefix(), peer.Number, c.Ref.Number)
	return c.observe(ctx, []keyed{{key: key, record: PeerReport{c.Ref, peer, reach, silent},
		always: reach != PeerConnected}})
}

// ObservePool stores what the gateway says of a pool; uid says which.
func (c *Connection) ObservePool(ctx context.Context, report PoolReport) error {
	report.Gateway = c.Ref
	key := fmt.Sprintf("%spool/%s/%d", c.store.observedPrefix(), report.UID, c.Ref.Number)
	return c.observe(ctx, []keyed{{key: key, record: report}})
}

// ObserveLoads stores the gateway's load every LoadsInterval, or earlier where a volume comes into use, and drops what comes between.
func (c *Connection) ObserveLoads(ctx context.Context, report LoadReport) error {
	now := c.store.now()
	c.mutex.Lock()
	c.unstoredUse = c.use.observe(report.Volumes, now) || c.unstoredUse
	interval := LoadsInterval
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
func (u *use) observe(volumes []VolumeLoad, now time.Time) bool {
	before, comes := *u, false
	*u = make(use, len(volumes))
	for _, l := range volumes {
		was := before[l.UID]
		if l.Bytes > was.bytes {
			comes = comes || was.at.IsZero() || now.Sub(was.at) > UsedFor
			was.at = now
		}
		(*u)[l.UID] = moved{l.Bytes, was.at}
	}
	return comes
}

// ForgetGateway deletes what was observed by a gateway and of it, its sessions included. Called before the gateway is removed.
func (s *Store) ForgetGateway(ctx context.Context, number uint32) error {
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
		if _, err := s.client.Txn(ctx).Then(batch...).Commit(); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return nil
}
