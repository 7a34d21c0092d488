package leader

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// metrics of a leader. In a replica that does not lead they are 0.
type metrics struct {
	leads     prometheus.Gauge
	changes   *prometheus.CounterVec
	failover  prometheus.Histogram
	refused   prometheus.Counter
	evicted   *prometheus.CounterVec
	failures  *prometheus.CounterVec
	plan      prometheus.Histogram
	imbalance prometheus.Gauge
	gateways  *prometheus.GaugeVec
	volumes   *prometheus.GaugeVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: "sluice", Subsystem: "orchestrator", Name: name, Help: help}
	}
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts(gauge(name, help)) }
	histogram := func(name, help string, first float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: "sluice", Subsystem: "orchestrator", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(first, 2, 14)}
	}
	m := &metrics{
		leads: prometheus.NewGauge(gauge("leader", "1 where this replica is the leader.")),
		changes: prometheus.NewCounterVec(counter("ownership_changes_total",
			"Changes of volumes' ownership that were stored."), []string{"reason"}),
		failover: prometheus.NewHistogram(histogram("failover_duration_seconds",
			"From the owner's death being known to the next owner serving.", 0.01)),
		refused: prometheus.NewCounter(counter("fencing_refused_total",
			"Gateways that were not declared dead because too many were just before.")),
		evicted: prometheus.NewCounterVec(counter("sessions_asked_to_leave_total",
			"Sessions that were asked to log out: beyond their host's limit, or at a portal that it is shown no more."),
			[]string{"reason"}),
		failures: prometheus.NewCounterVec(counter("failures_total", "Looks at an object that ended with an error."),
			[]string{"kind"}),
		plan: prometheus.NewHistogram(histogram("plan_duration_seconds", "Time that placement takes.", 0.0005)),
		imbalance: prometheus.NewGauge(gauge("placement_imbalance",
			"Most volumes for its weight that a gateway is to own, relative to the mean; 1 is even.")),
		gateways: prometheus.NewGaugeVec(gauge("gateways", "Gateways by health."), []string{"health"}),
		volumes:  prometheus.NewGaugeVec(gauge("volumes", "Volumes by state of ownership."), []string{"state"}),
	}
	for _, c := range []prometheus.Collector{m.leads, m.changes, m.failover, m.refused, m.evicted, m.failures, m.plan, m.imbalance,
		m.gateways, m.volumes} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	for _, reason := range []string{decide.EvictLimit, decide.EvictRebalance} {
		m.evicted.WithLabelValues(reason)
	}
	return m, nil
}

// count sets the metrics about all objects.
func (m *metrics) count(v *decide.LeaderView) {
	m.gateways.Reset()
	m.volumes.Reset()
	for _, health := range []model.GatewayHealth{model.GatewayNew, model.GatewayReady, model.GatewayDisconnected,
		model.GatewayDead, model.GatewayDraining, model.GatewayDrained, model.GatewayNotServing} {
		m.gateways.WithLabelValues(string(health))
	}
	for _, g := range v.Gateways {
		m.gateways.WithLabelValues(string(g.Status.Health)).Inc()
	}
	for _, state := range []model.OwnershipState{model.Unowned, model.Acquiring, model.Opening, model.Owned, model.Moving,
		model.Fencing, model.Orphaned} {
		m.volumes.WithLabelValues(string(state))
	}
	for _, volume := range v.Volumes {
		m.volumes.WithLabelValues(string(volume.Status.Ownership.State)).Inc()
	}
	m.imbalance.Set(v.Imbalance())
}

// none sets the metrics of a replica that does not lead.
func (m *metrics) none() {
	m.leads.Set(0)
	m.imbalance.Set(0)
	m.gateways.Reset()
	m.volumes.Reset()
}

// failovers measures the time from an owner's death to the next owner's service.
type failovers struct {
	// died has the last incarnation of each gateway that is known to be gone, and the time since when.
	died  map[uint32]departed
	since map[string]time.Time
}

type departed struct {
	ref model.GatewayRef
	at  time.Time
}

func newFailovers() failovers {
	return failovers{died: map[uint32]departed{}, since: map[string]time.Time{}}
}

// recordGone records that an incarnation is gone, at the first report of that.
func (f failovers) recordGone(ref model.GatewayRef, now time.Time) {
	if f.died[ref.Number].ref != ref {
		f.died[ref.Number] = departed{ref, now}
	}
}

// changed records a stored change of ownership, and returns the duration of the failover that it ends.
func (f failovers) changed(a *decide.ChangeOwner, now time.Time) (time.Duration, bool) {
	switch a.Reason {
	case decide.ReasonOwnerDead:
		if _, runs := f.since[a.Name]; !runs {
			f.since[a.Name] = now
			if died := f.died[a.From.Owner.Number]; died.ref == a.From.Owner {
				f.since[a.Name] = died.at
			}
		}
	case decide.ReasonServing:
		since, runs := f.since[a.Name]
		delete(f.since, a.Name)
		return now.Sub(since), runs
	case decide.ReasonUnexported:
		delete(f.since, a.Name)
	}
	return 0, false
}
