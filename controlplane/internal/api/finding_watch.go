package api

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// firstFindings bounds the wait of a watch for the present findings.
const firstFindings = 5 * time.Second

// feedWatchers computes the findings for watchers until the context ends: after a change, and at intervals.
func (f *Findings) feedWatchers(ctx context.Context) error {
	defer f.view.Subscribe(func(view.Change) { f.feed.changed() })()
	ticker := time.NewTicker(feedInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.feed.due:
		case <-ticker.C:
		}
		if !f.complete() || !f.feed.begin() {
			continue
		}
		f.feed.publish(f.items(time.Now()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(feedPause):
		}
	}
}

// complete reports whether this replica has read everything that findings need.
func (f *Findings) complete() bool {
	select {
	case <-f.view.Ready():
		return f.hostFaults.complete() && f.sessions.complete() && f.starts.complete() && f.knowsFacts()
	default:
		return false
	}
}

func (f *Findings) knowsFacts() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.factsKnown
}

// WatchFindings implements FindingService.
func (f *Findings) WatchFindings(r *pb.WatchFindingsRequest, stream pb.FindingService_WatchFindingsServer) error {
	ctx, cancel := context.WithTimeout(stream.Context(), firstFindings)
	defer cancel()
	if f.complete() {
		catchUp(ctx, f.store, f.view)
	}
	begun, leave := f.feed.join()
	defer leave()
	set, err := f.feed.next(ctx, nil, begun)
	if err != nil && stream.Context().Err() == nil {
		return status.Error(codes.Unavailable, "this replica has not read everything yet: try again")
	}
	if err == nil {
		err = stream.Send(&pb.WatchFindingsResponse{Type: pb.ChangeType_CHANGE_TYPE_RESET})
	}
	sent := map[string]*pb.Finding{}
	for first := true; err == nil; first = false {
		changes := findingChanges(r, set, sent)
		if first || len(changes) > 0 {
			changes = append(changes, &pb.WatchFindingsResponse{Type: pb.ChangeType_CHANGE_TYPE_BOOKMARK})
		}
		for _, change := range changes {
			if err := stream.Send(change); err != nil {
				return err
			}
		}
		set, err = f.feed.next(stream.Context(), set, begun)
	}
	return statusOf(err)
}

// findingChanges returns the differences between what a watcher has and the selected findings of a set, and updates what it has.
func findingChanges(r *pb.WatchFindingsRequest, set *findingSet, sent map[string]*pb.Finding) []*pb.WatchFindingsResponse {
	var changes []*pb.WatchFindingsResponse
	present := map[string]bool{}
	for _, found := range set.of(r) {
		if !selects(r, found.Finding) {
			continue
		}
		present[found.key] = true
		if sent[found.key] != found.shown {
			sent[found.key] = found.shown
			changes = append(changes, &pb.WatchFindingsResponse{Type: pb.ChangeType_CHANGE_TYPE_PUT, Finding: found.shown, Key: found.key})
		}
	}
	for key, last := range sent {
		if !present[key] {
			delete(sent, key)
			changes = append(changes, &pb.WatchFindingsResponse{Type: pb.ChangeType_CHANGE_TYPE_DELETED, Finding: last, Key: key})
		}
	}
	return changes
}
