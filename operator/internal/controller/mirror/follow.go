package mirror

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Bounds of the time between two attempts to watch.
const (
	watchAgainFirst = 200 * time.Millisecond
	watchAgainLast  = 10 * time.Second
)

var watchConnected = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "sluice_operator_control_plane_watch_connected",
	Help: "1 while changes of a kind of object reach the operator.",
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(watchConnected) }

// Follow calls a function with the name of each object that changes, until the context ends. After a broken stream it continues
// after the last change. If the control plane does not have that version any more, it calls the function for all objects.
func (n Noun[P]) Follow(ctx context.Context, changed func(name string)) {
	var version int64
	pause := watchAgainFirst
	last := ""
	for ctx.Err() == nil {
		received, err := n.follow(ctx, &version, changed)
		watchConnected.WithLabelValues(n.Kind).Set(0)
		if received {
			pause = watchAgainFirst
		}
		if ctx.Err() != nil {
			return
		}
		if status.Code(err) == codes.InvalidArgument { // a restored store may be behind the version
			version = 0
		}
		problem := "the control plane has ended the stream"
		if err != nil {
			problem = Explain(err).Message
		}
		level := 1 // a watch ends from time to time; the first failure to start one is logged at the default level
		if !received && problem != last {
			level, last = 0, problem
		}
		log.FromContext(ctx).V(level).Info("changes of the control plane are not heard", "kind", n.Kind, "problem", problem)
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, watchAgainLast)
	}
}

func (n Noun[P]) follow(ctx context.Context, version *int64, changed func(name string)) (received bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	next, err := n.Watch(ctx, *version)
	if err != nil {
		return false, err
	}
	for {
		change, err := next()
		if errors.Is(err, io.EOF) {
			return received, nil
		}
		if err != nil {
			return received, err
		}
		received = true
		watchConnected.WithLabelValues(n.Kind).Set(1)
		switch change.Type {
		case pb.ChangeType_CHANGE_TYPE_PUT, pb.ChangeType_CHANGE_TYPE_DELETED:
			changed(change.Object.GetMeta().GetName())
		case pb.ChangeType_CHANGE_TYPE_BOOKMARK:
			*version = change.Version
		}
	}
}
