package node

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// figures are the metrics of staged volumes, computed when Prometheus collects them.
type figures struct {
	service         *Service
	volumes         prometheus.Gauge
	sessions, paths *prometheus.GaugeVec
}

// States of sessions and paths: the working ones, and the ones for which portals exist without a session.
const (
	stateLive    = "live"
	stateLacking = "lacking"
)

// Metrics of the staged volumes. The state lacking is relative to the portals that targets had at the last discovery.
func (s *Service) Metrics() prometheus.Collector {
	return &figures{
		service: s,
		volumes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_csi_staged_volumes",
			Help: "Volumes that are staged on the node.",
		}),
		sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_csi_sessions",
			Help: "iSCSI sessions with targets of staged volumes: live, and lacking, where a portal has none that works.",
		}, []string{"state"}),
		paths: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_csi_paths",
			Help: "Paths of staged volumes: live, and lacking, where a portal leads to none that works.",
		}, []string{"state"}),
	}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(into chan<- *prometheus.Desc) {
	f.volumes.Describe(into)
	f.sessions.Describe(into)
	f.paths.Describe(into)
}

// tally counts sessions or paths.
type tally struct{ live, lacking int }

func (t *tally) add(live, wanted int) {
	t.live += live
	t.lacking += max(0, wanted-live)
}

func (t *tally) setGauges(into *prometheus.GaugeVec) {
	into.WithLabelValues(stateLive).Set(float64(t.live))
	into.WithLabelValues(stateLacking).Set(float64(t.lacking))
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(into chan<- prometheus.Metric) {
	volumes, sessions, paths, err := f.service.count()
	if err != nil {
		slog.Warn("metrics", "problem", err)
	}
	f.volumes.Set(float64(volumes))
	sessions.setGauges(f.sessions)
	paths.setGauges(f.paths)
	f.volumes.Collect(into)
	f.sessions.Collect(into)
	f.paths.Collect(into)
}

// count counts sessions and paths of the staged volumes. With an error it returns what could be read.
func (s *Service) count() (volumes int, sessions, paths tally, err error) {
	staged, err := s.volumesOf()
	for iqn, all := range staged {
		have, problem := s.sessions(iqn)
		if problem != nil {
			return volumes, sessions, paths, problem
		}
		wanted := max(s.portals.get(iqn), len(have))
		sessions.add(len(loggedIn(have)), wanted)
		for _, staged := range all {
			found, problem := s.find(staged.Attachment)
			if problem != nil {
				return volumes, sessions, paths, problem
			}
			volumes++
			if found == nil {
				found = &multipathMap{}
			}
			paths.add(found.running, wanted)
		}
	}
	return volumes, sessions, paths, err
}
