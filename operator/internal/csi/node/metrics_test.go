package node

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// figuresAre checks the exported metrics: volumes, sessions live and lacking, paths live and lacking.
func figuresAre(t *testing.T, s *Service, when, want string) {
	t.Helper()
	registry, answer := prometheus.NewRegistry(), httptest.NewRecorder()
	registry.MustRegister(s.Metrics())
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	values := map[string]string{}
	for line := range strings.Lines(answer.Body.String()) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			values[strings.TrimPrefix(key, "sluice_csi_")] = value
		}
	}
	figures := strings.Join([]string{values["staged_volumes"], values[`sessions{state="live"}`], values[`sessions{state="lacking"}`],
		values[`paths{state="live"}`], values[`paths{state="lacking"}`]}, " ")
	if figures != want {
		t.Errorf("%s: %s, and not %s", when, figures, want)
	}
}

func TestMetricsTellOfVolumesAndOfSessionsAndPathsThatWorkOrLack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.portals[two] = false
		v := m.volume(m.start(), rawBlock())
		figuresAre(t, v.Service, "at first", "0 0 0 0 0")
		if err := v.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		figuresAre(t, v.Service, "while a portal refuses", "1 1 1 1 1")
		m.answers(two, true)
		if err := v.stage(t.Context()); err != nil {
			t.Fatal(err)
		}
		figuresAre(t, v.Service, "with both", "1 2 0 2 0")
		for _, disk := range m.glob("block/sd*/device/state")[:1] {
			m.put("transport-offline", disk)
		}
		figuresAre(t, v.Service, "with a path that is down", "1 2 0 1 1")
		m.put("FAILED", m.glob("class/iscsi_session/*/state")[0])
		figuresAre(t, v.Service, "with a session that is down", "1 1 1 1 1")
		v.Service = m.start() // a new plugin has made no discovery yet
		figuresAre(t, v.Service, "of a plugin that starts again", "1 1 1 1 1")
		if err := v.unstage(t.Context()); err != nil {
			t.Fatal(err)
		}
		figuresAre(t, v.Service, "when all is gone", "0 0 0 0 0")
	})
}
