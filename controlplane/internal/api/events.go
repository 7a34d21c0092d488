package api

import (
	"context"
	"strconv"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// eventList names the list of events in its page tokens.
const eventList = "events"

// Events serves EventService.
type Events struct {
	pb.UnimplementedEventServiceServer
	store *store.Store
}

// NewEvents makes the service.
func NewEvents(s *store.Store) *Events { return &Events{store: s} }

// ListEvents implements EventService. The position of a page is the number of preceding events, from the oldest.
func (x *Events) ListEvents(ctx context.Context, r *pb.ListEventsRequest) (*pb.ListEventsResponse, error) {
	if err := withoutLabels("events", r.GetOptions().GetLabelSelector()); err != nil {
		return nil, err
	}
	selected, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	position, err := pagePosition(eventList, selected.token)
	skip := 0
	if err == nil && position != "" {
		if skip, err = strconv.Atoi(position); err != nil || skip <= 0 {
			err = store.ErrPageToken
		}
	}
	if err != nil {
		return nil, selected.statusOf(err)
	}
	all, version, err := x.store.Events(ctx)
	if err != nil {
		return nil, statusOf(err)
	}
	response := &pb.ListEventsResponse{ResourceVersion: version}
	seen := 0
	var bytes budget
	for _, event := range all {
		if !concerns(event, r.GetKind(), r.GetName()) {
			continue
		}
		if seen++; seen <= skip {
			continue
		}
		shown, count := showEvent(event), len(response.Events)
		if count == selected.size || !bytes.takes(shown) {
			response.NextPageToken = pageToken(eventList, strconv.Itoa(skip+count))
			break
		}
		response.Events = append(response.Events, shown)
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
