package api

import (
	"context"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// eventPage is how many events a page has where the caller does not say.
const eventPage = 500

// Events serves EventService.
type Events struct {
	pb.UnimplementedEventServiceServer
	store *store.Store
}

// NewEvents makes the service.
func NewEvents(s *store.Store) *Events { return &Events{store: s} }

// ListEvents implements EventService. A page's token is the number of events, from the oldest, that came before.
func (x *Events) ListEvents(ctx context.Context, r *pb.ListEventsRequest) (*pb.ListEventsResponse, error) {
	if err := withoutLabels("events", r.GetOptions().GetLabelSelector()); err != nil {
		return nil, err
	}
	skip := 0
	if token := r.GetOptions().GetPageToken(); token != "" {
		var err error
		if skip, err = strconv.Atoi(token); err != nil || skip < 0 {
			return nil, status.Errorf(codes.InvalidArgument, "options.pageToken: %.40q is none of ours", token)
		}
	}
	all, version, err := x.store.Events(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	size := int(r.GetOptions().GetPageSize())
	if size <= 0 {
		size = eventPage
	}
	response := &pb.ListEventsResponse{ResourceVersion: version}
	seen := 0
	for _, event := range all {
		if !concerns(event, r.GetKind(), r.GetName()) {
			continue
		}
		if seen++; seen <= skip {
			continue
		}
		if len(response.Events) == size {
			response.NextPageToken = strconv.Itoa(skip + size)
			break
		}
		response.Events = append(response.Events, showEvent(event))
	}
	return response, nil
}

// WatchEvents implements EventService.
func (x *Events) WatchEvents(r *pb.WatchEventsRequest, stream pb.EventService_WatchEventsServer) error {
	if err := withoutLabels("events", r.GetOptions().GetLabelSelector()); err != nil {
		return err
	}
	return statusOf(x.store.WatchEvents(stream.Context(), r.GetOptions().GetResourceVersion(),
		func(change store.RecordChange[*model.Event]) error {
			if change.Type != store.Put || !concerns(change.Record, r.GetKind(), r.GetName()) {
				return nil
			}
			return stream.Send(&pb.WatchEventsResponse{Event: showEvent(change.Record), ResourceVersion: change.Resume})
		}))
}

func concerns(event *model.Event, kind, name string) bool {
	return (kind == "" || string(event.Object) == kind) && (name == "" || event.Name == name)
}

func showEvent(e *model.Event) *pb.Event {
	severities := map[model.EventSeverity]pb.EventSeverity{
		model.EventNormal:  pb.EventSeverity_EVENT_SEVERITY_NORMAL,
		model.EventWarning: pb.EventSeverity_EVENT_SEVERITY_WARNING,
		model.EventAlarm:   pb.EventSeverity_EVENT_SEVERITY_ALARM,
	}
	return &pb.Event{Sequence: e.Sequence, Time: showTime(e.Time), Severity: severities[e.Severity],
		Kind: string(e.Object), Name: e.Name, Reason: e.Reason, Message: e.Message, Count: e.Count}
}
