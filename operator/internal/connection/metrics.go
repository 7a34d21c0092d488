package connection

import (
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var callDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name: "sluice_operator_control_plane_call_duration_seconds",
	Help: "Calls to the control plane, by method and gRPC code.",
}, []string{"method", "code"})

func init() { metrics.Registry.MustRegister(callDuration) }

func observe(method string, err error, took time.Duration) {
	callDuration.WithLabelValues(path.Base(method), status.Code(err).String()).Observe(took.Seconds())
}
