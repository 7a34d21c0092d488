package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// headerBound is the time within which the header of a request for metrics must arrive.
const headerBound = 5 * time.Second

// measured returns an interceptor that counts calls and measures their duration.
func measured(registry prometheus.Registerer) grpc.UnaryServerInterceptor {
	calls := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sluice_csi_call_duration_seconds",
		Help:    "CSI calls, by method and gRPC code.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 18), // up to two minutes, the longest duration of a call
	}, []string{"method", "code"})
	registry.MustRegister(calls)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		begun := time.Now()
		response, err := handle(ctx, request)
		calls.WithLabelValues(path.Base(info.FullMethod), status.Code(err).String()).Observe(time.Since(begun).Seconds())
		return response, err
	}
}

// Page is a further page that is served beside the metrics.
type Page struct {
	Path string
	Show http.HandlerFunc
}

// ServeMetrics serves /metrics, and further pages, at an address (host:port) until the context ends. Empty: it does nothing.
func ServeMetrics(ctx context.Context, address string, registry *prometheus.Registry, pages ...Page) error {
	if address == "" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	for _, page := range pages {
		mux.Handle(page.Path, page.Show)
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: headerBound}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	go func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.ErrorContext(ctx, "metrics are no longer served", "problem", err)
		}
	}()
	slog.InfoContext(ctx, "serving", "metrics", listener.Addr().String())
	return nil
}
