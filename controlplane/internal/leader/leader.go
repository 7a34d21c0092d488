package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
	"sluice.dev/sluice/controlplane/internal/store"
)

const (
	// workers is the number of objects on which the leader decides concurrently. Changes that are stored together need one sync
	// of etcd's disk.
	workers = 64
	// movers is the number of workers that decide concurrently on moves with a limited number. Each of them may count the same
	// moves, and exceed the limit by one.
	movers = 8
	// storeTimeout bounds one change. If etcd does not answer within it, the object is decided on again later.
	storeTimeout = 5 * time.Second
	// enqueueInterval is the interval at which the leader decides on every object, even without changes.
	enqueueInterval = 30 * time.Second
	// planEvery is the interval of plans while only loads change.
	planEvery = 30 * time.Second
	// planPause is the minimum time between two plans, so that a burst of changes needs one plan.
	planPause = 100 * time.Millisecond
	// againAfter is the pause before a failed watch or candidacy is tried again.
	againAfter = 500 * time.Millisecond
)

// Config configures a Leader.
type Config struct {
	Store *store.Store
	// Replica is the name of this process among the candidates; required.
	Replica string
	// Events, Log, Registerer, Clock, Policy and BlocklistFor are optional.
	Events     Events
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
	Policy     placement.Policy
	// BlocklistFor is the duration of blocklist entries of fenced Ceph clients: at least MinBlocklist; 0: decide.BlocklistFor.
	BlocklistFor time.Duration
}

// Leader stands for election and, while elected, carries out the decisions of package decide.
type Leader struct {
	Config
	metrics *metrics
}

// New returns a Leader, which Run starts. It fails if a required field of config is missing or a value is invalid.
func New(config Config) (*Leader, error) {
	if config.Store == nil || config.Replica == "" {
		return nil, errors.New("a leader needs a store and the name of its replica")
	}
	if config.Events == nil {
		config.Events = noEvents{}
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Registerer == nil {
		config.Registerer = prometheus.NewRegistry()
	}
	if config.Clock == nil {
		config.Clock = time.Now
	}
	if config.BlocklistFor == 0 {
		config.BlocklistFor = decide.BlocklistFor
	}
	if config.BlocklistFor < decide.MinBlocklist {
		return nil, fmt.Errorf("clients of Ceph blocklisted for %v: a former owner may sleep longer than that; %v at least",
			config.BlocklistFor, decide.MinBlocklist)
	}
	m, err := newMetrics(config.Registerer)
	if err != nil {
		return nil, err
	}
	return &Leader{config, m}, nil
}

// Run stands for election and leads when elected. It repeats this until the context ends.
func (l *Leader) Run(ctx context.Context) error {
	for {
		err := l.Store.Lead(ctx, l.Replica, l.lead)
		l.metrics.none()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.Log.Warn("not the leader", "replica", l.Replica, "reason", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(againAfter):
		}
	}
}

// A leader writes only through its term.
var _ decide.Store = (*store.Term)(nil)

// term is one replica's time as the leader.
type term struct {
	*Leader
	// writes makes every change of this leader, while the term lasts (R1).
	writes *store.Term
	queue  *queue

	movers chan struct{}

	mutex sync.Mutex
	view  *decide.LeaderView
	// unsynced are the watches that have not reported everything yet. Until none is left, nothing is decided.
	unsynced  map[model.Kind]bool
	synced    chan struct{}
	limited   map[decide.Key]bool
	failovers failovers
	replan    chan struct{}
}

func (l *Leader) lead(ctx context.Context, began *store.Term) error {
	t := &term{Leader: l, writes: began, queue: newQueue(), movers: make(chan struct{}, movers), view: decide.NewLeaderView(began.Version, l.Clock()),
		unsynced: map[model.Kind]bool{}, synced: make(chan struct{}),
		limited: map[decide.Key]bool{}, failovers: newFailovers(), replan: make(chan struct{}, 1)}
	t.view.BlocklistFor = l.BlocklistFor
	l.Log.Info("leader", "replica", l.Replica, "term", began.Version)
	l.metrics.leads.Set(1)
	group, ctx := errgroup.WithContext(ctx)
	t.watchAll(ctx, group)
	for range workers {
		group.Go(func() error { return t.work(ctx) })
	}
	group.Go(func() error { return t.planner(ctx) })
	group.Go(func() error { return t.enqueueAllPeriodically(ctx) })
	return group.Wait()
}

// plan requests a plan if anything has changed. The caller holds the mutex.
func (t *term) plan() {
	if !t.view.Dirty() {
		return
	}
	select {
	case t.replan <- struct{}{}:
	default:
	}
}

// planner makes a plan when something has changed, and at intervals for changed loads. It pauses for a multiple of the duration
// of a plan, so that it uses only a small part of a core.
func (t *term) planner(ctx context.Context) error {
	ticker := time.NewTicker(planEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		case <-t.replan:
		}
		if err := t.whenSynced(ctx); err != nil {
			return err
		}
		t.mutex.Lock()
		cluster := t.view.Cluster()
		t.view.NextPlan()
		t.mutex.Unlock()
		cluster.Policy = t.Policy
		began := time.Now()
		assignment := placement.Plan(cluster)
		took := time.Since(began)
		t.metrics.plan.Observe(took.Seconds())
		t.mutex.Lock()
		t.queue.add(t.view.TakePlan(assignment)...)
		t.metrics.count(t.view)
		t.mutex.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(planPause, 4*took)):
		}
	}
}

// enqueueAllPeriodically adds every object to the queue at intervals, even without changes.
func (t *term) enqueueAllPeriodically(ctx context.Context) error {
	ticker := time.NewTicker(enqueueInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		t.mutex.Lock()
		if len(t.unsynced) == 0 {
			t.queue.add(t.view.Everything()...)
		}
		t.mutex.Unlock()
	}
}

// whenSynced waits until every watch has reported everything.
func (t *term) whenSynced(ctx context.Context) error {
	for {
		t.mutex.Lock()
		synced, waits := t.synced, len(t.unsynced) > 0
		t.mutex.Unlock()
		if !waits {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-synced:
		}
	}
}

func (t *term) work(ctx context.Context) error {
	for {
		key, ok := t.queue.next(ctx)
		if !ok {
			return ctx.Err()
		}
		if err := t.whenSynced(ctx); err != nil {
			return err
		}
		wait, err := t.reconcile(ctx, key)
		if errors.Is(err, store.ErrDeposed) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			t.metrics.failures.WithLabelValues(string(key.Kind)).Inc()
			t.Log.Warn("will be tried again", "kind", key.Kind, "name", key.Name, "problem", err)
		}
		t.queue.done(key, err != nil, wait)
	}
}
