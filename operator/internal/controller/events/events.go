// Package events records events of the control plane, above all failovers, as Events of the corresponding resource.
package events

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// watchInterval is the average time between two attempts to watch.
const watchInterval = 2 * time.Second

// eventRecorder runs in the leading replica.
type eventRecorder struct {
	service  pb.EventServiceClient
	client   client.Client
	recorder events.EventRecorder
	// version of the last recorded event.
	version int64
}

// Setup adds it to a manager.
func Setup(mgr manager.Manager, connection grpc.ClientConnInterface) error {
	return mgr.Add(&eventRecorder{
		service: pb.NewEventServiceClient(connection), client: mgr.GetClient(), recorder: mgr.GetEventRecorder("sluice-control-plane"),
	})
}

// Start implements manager.Runnable. It does not record events from before its start.
func (t *eventRecorder) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		err := t.listen(ctx)
		log.FromContext(ctx).V(1).Info("the control plane's events are not heard", "problem", err)
		select {
		case <-ctx.Done():
		case <-time.After(watchInterval/2 + rand.N(watchInterval)):
		}
	}
	return nil
}

func (t *eventRecorder) listen(ctx context.Context) error {
	if t.version == 0 {
		page, err := t.service.ListEvents(ctx, &pb.ListEventsRequest{Options: &pb.ListOptions{PageSize: 1}})
		if err != nil {
			return err
		}
		t.version = page.GetResourceVersion()
	}
	stream, err := t.service.WatchEvents(ctx, &pb.WatchEventsRequest{Options: &pb.WatchOptions{ResourceVersion: t.version}})
	if err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		t.version = max(t.version, response.GetResourceVersion())
		if event := response.GetEvent(); event != nil {
			t.record(ctx, event)
		}
	}
}

func (t *eventRecorder) record(ctx context.Context, event *pb.Event) {
	resource := mirror.Find(ctx, t.client, event.GetKind(), event.GetName())
	if resource == nil {
		return // it has no resource, such as an object that sluicectl made
	}
	kind := corev1.EventTypeNormal
	if event.GetSeverity() != pb.EventSeverity_EVENT_SEVERITY_NORMAL {
		kind = corev1.EventTypeWarning
	}
	mirror.Tell(t.recorder, resource, kind, event.GetReason(), event.GetMessage())
}
