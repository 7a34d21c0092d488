package api_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// The services refuse the request before they read the store, so the store needs no etcd here.
func TestALabelSelectorIsRefusedForObjectsWithoutLabels(t *testing.T) {
	labels := map[string]string{"tier": "gold"}
	list, watch := &pb.ListOptions{LabelSelector: labels}, &pb.WatchOptions{LabelSelector: labels}
	events, sessions := api.NewEvents(new(store.Store)), api.NewSessions(new(store.Store), nil)
	_, listEvents := events.ListEvents(t.Context(), &pb.ListEventsRequest{Options: list})
	_, listSessions := sessions.ListSessions(t.Context(), &pb.ListSessionsRequest{Options: list})
	for call, err := range map[string]error{
		"ListEvents":    listEvents,
		"ListSessions":  listSessions,
		"WatchEvents":   events.WatchEvents(&pb.WatchEventsRequest{Options: watch}, nil),
		"WatchSessions": sessions.WatchSessions(&pb.WatchSessionsRequest{Options: watch}, nil),
	} {
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s with a label selector: %v", call, err)
		}
	}
}
