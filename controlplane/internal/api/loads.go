package api

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	// loadList names the list of loads in its page tokens.
	loadList = "loads"
	// requestAgain is the interval at which a replica that is asked for loads repeats its request in the store.
	requestAgain = model.LiveLoadWanted / 3
	// firstLoads bounds the wait for two reports of each gateway.
	firstLoads = 6 * time.Second
	// loadsCheck is the interval at which a waiting call checks whether the reports are there.
	loadsCheck = 50 * time.Millisecond
	// maxLoadGap is the longest interval between two reports that gives a rate. After it, the rate would not be a present one.
	maxLoadGap = 3 * model.LiveLoadInterval
)

// loadPair has the last two reports of one process of a gateway.
type loadPair struct {
	number        uint32
	before, after *model.LiveLoad
	// received is when this replica read `after`.
	received time.Time
}

// interval between the two reports; 0: they give no present rate.
func (p loadPair) interval(now time.Time) time.Duration {
	if p.before == nil || now.Sub(p.received) > maxLoadGap {
		return 0
	}
	passed := p.after.Clock - p.before.Clock
	if passed <= 0 || passed > maxLoadGap {
		return 0
	}
	return passed
}

// Loads serves LoadService. Its Run must run.
type Loads struct {
	pb.UnimplementedLoadServiceServer
	store *store.Store
	view  *view.Cache
	log   *slog.Logger
	pairs *followed[uint32, loadPair]
	// shared has what watchers receive.
	shared sharedLoads

	mutex sync.Mutex
	// requested is when this replica last asked for live loads in the store.
	requested time.Time
}

// NewLoads makes the service.
func NewLoads(s *store.Store, v *view.Cache, log *slog.Logger) *Loads {
	return &Loads{store: s, view: v, log: log, pairs: newFollowed(func(p loadPair) uint32 { return p.number })}
}

// Run follows the reports of gateways until the context ends.
func (l *Loads) Run(ctx context.Context) error {
	return l.pairs.run(ctx, "live loads", l.log, func(ctx context.Context, after int64, tell func(store.RecordChange[loadPair]) error) error {
		return l.store.WatchLiveLoads(ctx, after, func(c store.RecordChange[*model.LiveLoad]) error {
			change := store.RecordChange[loadPair]{Type: c.Type, Version: c.Version, Resume: c.Resume}
			if c.Record != nil {
				change.Record = l.pair(c.Record)
			}
			return tell(change)
		})
	})
}

// pair returns a report with the one before it, if both are of one process.
func (l *Loads) pair(after *model.LiveLoad) loadPair {
	next := loadPair{number: after.Gateway.Number, after: after, received: time.Now()}
	if last, known := l.pairs.get(next.number); known && last.after.Gateway == after.Gateway {
		next.before = last.after
	}
	return next
}

// ListLoads implements LoadService. The position of a page is the name after which it begins.
func (l *Loads) ListLoads(ctx context.Context, r *pb.ListLoadsRequest) (*pb.ListLoadsResponse, error) {
	select {
	case <-l.view.Ready():
	default:
		return nil, status.Error(codes.Unavailable, "this replica has not read all objects yet: try again")
	}
	after, err := pagePosition(loadList, r.GetPageToken())
	if err != nil {
		return nil, page{field: "pageToken"}.statusOf(err)
	}
	if err := l.request(ctx); err != nil {
		return nil, statusOf(err)
	}
	l.await(ctx)
	catchUp(ctx, l.store, l.view)
	size := int(r.GetPageSize())
	if size == 0 {
		size = store.DefaultPageSize
	}
	response := &pb.ListLoadsResponse{}
	var bytes budget
	for _, load := range l.loads(r.GetKind(), time.Now()) {
		name, count := load.GetObject().GetName(), len(response.Loads)
		if name <= after {
			continue
		}
		if count == min(size, store.MaxPageSize) || !bytes.takes(load) {
			response.NextPageToken = pageToken(loadList, response.Loads[count-1].GetObject().GetName())
			break
		}
		response.Loads = append(response.Loads, load)
	}
	return response, ctx.Err()
}

// request has replicas store live loads, unless this replica has asked for them a moment ago.
func (l *Loads) request(ctx context.Context) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if time.Since(l.requested) < requestAgain {
		return nil
	}
	if err := l.store.RequestLiveLoads(ctx); err != nil {
		return err
	}
	l.requested = time.Now()
	return nil
}

// await returns when each connected gateway has a present rate, or after firstLoads.
func (l *Loads) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstLoads)
	defer cancel()
	for !l.complete(time.Now()) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(loadsCheck):
		}
	}
}

func (l *Loads) complete(now time.Time) bool {
	var numbers []uint32
	l.view.Read(func(o *objects.Objects) {
		for _, gateway := range o.Gateways {
			switch gateway.Status.Health {
			case model.GatewayNew, model.GatewayDisconnected, model.GatewayDead: // it has no stream
			default:
				numbers = append(numbers, gateway.Status.Number)
			}
		}
	})
	return !slices.ContainsFunc(numbers, func(number uint32) bool {
		pair, known := l.pairs.get(number)
		return !known || pair.interval(now) == 0
	})
}

// loads returns the loads of all objects of a kind, in the order of their names.
func (l *Loads) loads(kind string, now time.Time) []*pb.Load {
	var loads []*pb.Load
	pairs := l.pairs.all()
	l.view.Read(func(o *objects.Objects) {
		switch kind {
		case "Volume":
			loads = volumeLoads(o, pairs, now)
		case "Host":
			loads = hostLoads(o, pairs, now)
		case "Gateway":
			loads = gatewayLoads(o, pairs, now)
		}
	})
	for _, load := range loads {
		load.Object.Kind = kind
	}
	slices.SortFunc(loads, func(a, b *pb.Load) int { return strings.Compare(a.GetObject().GetName(), b.GetObject().GetName()) })
	return loads
}

// rates adds up what gateways counted in their intervals.
type rates struct {
	load                *pb.Load
	readTime, writeTime meanTime
	otherTime           meanTime
}

// meanTime has commands and the sum of their durations.
type meanTime struct {
	commands uint64
	sum      time.Duration
}

func (m meanTime) mean() *durationpb.Duration {
	if m.commands == 0 {
		return nil
	}
	return durationpb.New(m.sum / time.Duration(m.commands))
}

func (m *meanTime) add(commands uint64, sum time.Duration) {
	m.commands += commands
	m.sum += sum
}

func newRates(name string) *rates {
	return &rates{load: &pb.Load{Object: &pb.ObjectReference{Name: name}}}
}

// measured notes that a report counts. The interval of a sum is that of its longest part.
func (r *rates) measured(interval time.Duration, received time.Time) {
	if r.load.Interval == nil || interval > r.load.Interval.AsDuration() {
		r.load.Interval = durationpb.New(interval)
	}
	if r.load.MeasuredTime == nil || received.After(r.load.MeasuredTime.AsTime()) {
		r.load.MeasuredTime = timestamppb.New(received)
	}
}

func (r *rates) addVolume(before, after model.VolumeCounts, interval time.Duration) {
	r.load.InProgress += after.InProgress
	if after.Commands < before.Commands {
		return // the gateway has opened the volume again
	}
	seconds := interval.Seconds()
	reads, writes := after.Reads-before.Reads, after.Writes-before.Writes
	r.load.ReadsPerSecond += float64(reads) / seconds
	r.load.WritesPerSecond += float64(writes) / seconds
	r.load.OthersPerSecond += float64(after.Commands-before.Commands-reads-writes) / seconds
	r.load.ReadBytesPerSecond += float64(after.ReadBytes-before.ReadBytes) / seconds
	r.load.WriteBytesPerSecond += float64(after.WriteBytes-before.WriteBytes) / seconds
	r.readTime.add(reads, after.ReadTime-before.ReadTime)
	r.writeTime.add(writes, after.WriteTime-before.WriteTime)
}

func (r *rates) addHost(before, after model.HostCounts, interval time.Duration) {
	r.load.Sessions += after.Sessions
	r.load.InProgress += after.InProgress
	if after.Answered < before.Answered {
		return // the host had no session meanwhile
	}
	seconds := interval.Seconds()
	r.load.ReadsPerSecond += float64(after.Reads-before.Reads) / seconds
	r.load.WritesPerSecond += float64(after.Writes-before.Writes) / seconds
	r.load.OthersPerSecond += float64(after.Others-before.Others) / seconds
	r.load.ReadBytesPerSecond += float64(after.ReadBytes-before.ReadBytes) / seconds
	r.load.WriteBytesPerSecond += float64(after.WriteBytes-before.WriteBytes) / seconds
	r.otherTime.add(after.Answered-before.Answered, after.AnsweredTime-before.AnsweredTime)
}

// result has the mean durations of everything that was added.
func (r *rates) result() *pb.Load {
	r.load.ReadLatency, r.load.WriteLatency = r.readTime.mean(), r.writeTime.mean()
	all := r.otherTime
	all.add(r.readTime.commands, r.readTime.sum)
	all.add(r.writeTime.commands, r.writeTime.sum)
	r.load.Latency = all.mean()
	return r.load
}

func volumeLoads(o *objects.Objects, pairs []loadPair, now time.Time) []*pb.Load {
	byGateway := map[uint32]loadPair{}
	for _, pair := range pairs {
		byGateway[pair.number] = pair
	}
	loads := make([]*pb.Load, 0, len(o.Volumes))
	for name, volume := range o.Volumes {
		rates := newRates(name)
		owner := volume.Status.Ownership.Owner
		rates.load.Gateway = o.GatewayName(owner.Number)
		if pair := byGateway[owner.Number]; pair.after != nil && pair.after.Gateway == owner {
			if interval := pair.interval(now); interval > 0 {
				rates.measured(interval, pair.received)
				rates.addVolume(pair.before.Volumes[volume.Meta.UID], pair.after.Volumes[volume.Meta.UID], interval)
			}
		}
		loads = append(loads, rates.result())
	}
	return loads
}

func hostLoads(o *objects.Objects, pairs []loadPair, now time.Time) []*pb.Load {
	loads := make([]*pb.Load, 0, len(o.Hosts))
	for name, host := range o.Hosts {
		rates := newRates(name)
		for _, pair := range pairs {
			if interval := pair.interval(now); interval > 0 {
				rates.measured(interval, pair.received)
				rates.addHost(pair.before.Hosts[host.Meta.UID], pair.after.Hosts[host.Meta.UID], interval)
			}
		}
		loads = append(loads, rates.result())
	}
	return loads
}

func gatewayLoads(o *objects.Objects, pairs []loadPair, now time.Time) []*pb.Load {
	loads := make([]*pb.Load, 0, len(o.Gateways))
	for name, gateway := range o.Gateways {
		rates := newRates(name)
		for _, pair := range pairs {
			interval := pair.interval(now)
			if pair.number != gateway.Status.Number || interval == 0 {
				continue
			}
			rates.measured(interval, pair.received)
			rates.load.Sessions, rates.load.BusyPermille = pair.after.Sessions, pair.after.BusyPermille
			for uid, counts := range pair.after.Volumes {
				rates.addVolume(pair.before.Volumes[uid], counts, interval)
			}
		}
		loads = append(loads, rates.result())
	}
	return loads
}
