package api

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// sharedLoads are the loads of each kind that watchers share. It is safe for concurrent use.
type sharedLoads struct {
	mutex sync.Mutex
	kinds map[string]measuredLoads
}

type measuredLoads struct {
	loads []*pb.Load
	time  time.Time
}

// of returns the loads of a kind. It measures them if the last measurement is older than half an interval.
func (s *sharedLoads) of(kind string, now time.Time, measure func(string, time.Time) []*pb.Load) []*pb.Load {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	last, measured := s.kinds[kind]
	if !measured || now.Sub(last.time) >= model.LiveLoadInterval/2 {
		last = measuredLoads{measure(kind, now), now}
		if s.kinds == nil {
			s.kinds = map[string]measuredLoads{}
		}
		s.kinds[kind] = last
	}
	return last.loads
}

// WatchLoads implements LoadService.
func (l *Loads) WatchLoads(r *pb.WatchLoadsRequest, stream pb.LoadService_WatchLoadsServer) error {
	select {
	case <-l.view.Ready():
	default:
		return status.Error(codes.Unavailable, "this replica has not read all objects yet: try again")
	}
	ctx := stream.Context()
	if err := l.request(ctx); err != nil {
		return statusOf(err)
	}
	l.await(ctx)
	catchUp(ctx, l.store, l.view)
	ticker := time.NewTicker(model.LiveLoadInterval)
	defer ticker.Stop()
	for {
		for _, message := range loadMessages(selectedLoads(l.shared.of(r.GetKind(), time.Now(), l.loads), r.GetNames())) {
			if err := stream.Send(message); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return statusOf(ctx.Err())
		case <-ticker.C:
		}
		if err := l.request(ctx); err != nil {
			return statusOf(err)
		}
	}
}

// selectedLoads returns the loads of the named objects; without names, all.
func selectedLoads(all []*pb.Load, names []string) []*pb.Load {
	if len(names) == 0 {
		return all
	}
	var selected []*pb.Load
	for _, load := range all {
		if slices.Contains(names, load.GetObject().GetName()) {
			selected = append(selected, load)
		}
	}
	return selected
}

// loadMessages returns the messages of one measurement, at least one.
func loadMessages(loads []*pb.Load) []*pb.WatchLoadsResponse {
	messages := []*pb.WatchLoadsResponse{{}}
	for loads := range slices.Chunk(loads, store.MaxPageSize) {
		last := messages[len(messages)-1]
		if last.Loads != nil {
			last.More = true
			last = &pb.WatchLoadsResponse{}
			messages = append(messages, last)
		}
		last.Loads = loads
	}
	return messages
}
