package server

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// metrics of the gRPC server.
type metrics struct {
	calls *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sluice_controlplane_rpc_duration_seconds",
		Help:    "Time from a call's arrival to its end; for streams, how long they were open.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
	}, []string{"service", "method", "code"})}
	registry.MustRegister(m.calls)
	return m
}

func (m *metrics) observeCall(method string, code codes.Code, took time.Duration) {
	service, name := grpcNames(method)
	m.calls.WithLabelValues(service, name, code.String()).Observe(took.Seconds())
}

// grpcNames splits `/package.Service/Method`.
func grpcNames(method string) (service, name string) {
	service, name, _ = strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service, name
}
