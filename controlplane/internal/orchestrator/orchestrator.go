package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
	"sluice.dev/sluice/controlplane/internal/store"
)

const (
	// workers decide and store for so many objects at a time: what they store together costs etcd one sync of its disk.
	workers = 64
	// movers of them decide at a time on moves that count those under way: each may count the same, and be one too many.
	movers = 8
	// storeTimeout bounds one change; etcd that does not answer for so long is looked at again later.
	storeTimeout = 5 * time.Second
	// lookEvery is how often everything is looked at anew, whatever was heard.
	lookEvery = 30 * time.Second
	// againAfter is the pause before a watch, or a candidacy, that failed is tried again.
	againAfter = 500 * time.Millisecond
)

// Config says how an Orchestrator runs.
type Config struct {
	Store *store.Store
	// Replica names this process among the candidates; required.
	Replica string
	// Events, Log, Registerer, Clock, Policy and BlocklistFor may be left out.
	Events     Events
	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
	Policy     placement.Policy
	// BlocklistFor is how long clients of Ceph that are shut out stay so: MinBlocklist at least, 0 means BlocklistFor.
	BlocklistFor time.Duration
}

// Orchestrator carries out what the objects ask for, in whichever replica leads.
type Orchestrator struct {
	Config
	metrics *metrics
}

// New makes an Orchestrator. Run starts it.
func New(config Config) (*Orchestrator, error) {
	if config.Store == nil || config.Replica == "" {
		return nil, errors.New("an orchestrator needs a store, and a name among the replicas")
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
		config.BlocklistFor = BlocklistFor
	}
	if config.BlocklistFor < MinBlocklist {
		return nil, fmt.Errorf("clients of Ceph blocklisted for %v: a former owner may sleep longer than that; %v at least",
			config.BlocklistFor, MinBlocklist)
	}
	m, err := newMetrics(config.Registerer)
	if err != nil {
		return nil, err
	}
	return &Orchestrator{config, m}, nil
}

// Run stands for election, leads when elected, and begins again when it lost, until the context ends.
func (o *Orchestrator) Run(ctx context.Context) error {
	for {
		err := o.Store.Lead(ctx, o.Replica, o.lead)
		o.metrics.none()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.Log.Warn("not the leader", "replica", o.Replica, "reason", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(againAfter):
		}
	}
}

// term is one time as the leader.
type term struct {
	*Orchestrator
	queue *queue

	movers chan struct{}

	mutex sync.Mutex
	view  *View
	// unsynced are the watches that have not told everything yet: until none is left, nothing is decided.
	unsynced  map[model.Kind]bool
	synced    chan struct{}
	alarms    map[Key]string
	limited   map[Key]bool
	failovers failovers
	replan    chan struct{}
}

func (o *Orchestrator) lead(ctx context.Context, began store.Term) error {
	t := &term{Orchestrator: o, queue: newQueue(), movers: make(chan struct{}, movers), view: NewView(began.Version, o.Clock()),
		unsynced: map[model.Kind]bool{}, synced: make(chan struct{}), alarms: map[Key]string{},
		limited: map[Key]bool{}, failovers: newFailovers(), replan: make(chan struct{}, 1)}
	t.view.BlocklistFor = o.BlocklistFor
	o.Log.Info("leader", "replica", o.Replica, "term", began.Version)
	o.metrics.leads.Set(1)
	group, ctx := errgroup.WithContext(ctx)
	t.watchAll(ctx, group)
	for range workers {
		group.Go(func() error { return t.work(ctx) })
	}
	group.Go(func() error { return t.planner(ctx) })
	group.Go(func() error { return t.lookAgain(ctx) })
	return group.Wait()
}

// plan asks for a plan, if anything has changed. Under the mutex.
func (t *term) plan() {
	if !t.view.Dirty() {
		return
	}
	select {
	case t.replan <- struct{}{}:
	default:
	}
}

// planner plans when something has changed, and now and then for what loads have become. It pauses for a multiple of the
// time that a plan takes, so that it never takes more than a small part of a core.
func (t *term) planner(ctx context.Context) error {
	ticker := time.NewTicker(PlanEvery)
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
		t.metrics.count(t.view, t.alarms)
		t.mutex.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(PlanPause, 4*took)):
		}
	}
}

// lookAgain looks at everything now and then, whatever was heard.
func (t *term) lookAgain(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
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

// whenSynced waits until every watch has told everything.
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
