package server_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// followFindings has the replica watch what findings need, until the test ends.
func (s *system) followFindings() {
	s.t.Helper()
	s.follow()
	s.background(s.faults.Run)
}

// background runs a part of the replica until the test ends.
func (s *system) background(run func(context.Context) error) {
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run(ctx)
	}()
	s.t.Cleanup(func() { stop(); <-ended })
}

// findingChanges receives what a watch of findings sends.
type findingChanges struct {
	t      *testing.T
	stream pb.FindingService_WatchFindingsClient
}

func (s *system) watchFindings(request *pb.WatchFindingsRequest) *findingChanges {
	s.t.Helper()
	stream, err := pb.NewFindingServiceClient(s.as("reader")).WatchFindings(s.t.Context(), request)
	if err != nil {
		s.t.Fatal(err)
	}
	return &findingChanges{s.t, stream}
}

func (f *findingChanges) next(want pb.ChangeType) *pb.WatchFindingsResponse {
	f.t.Helper()
	change, err := f.stream.Recv()
	if err != nil || change.GetType() != want {
		f.t.Fatalf("%v %v, wanted %s", change, err, want)
	}
	return change
}

func (f *findingChanges) reset() { f.t.Helper(); f.next(pb.ChangeType_CHANGE_TYPE_RESET) }

func (f *findingChanges) put() *pb.WatchFindingsResponse {
	f.t.Helper()
	return f.next(pb.ChangeType_CHANGE_TYPE_PUT)
}

func (f *findingChanges) bookmark() { f.t.Helper(); f.next(pb.ChangeType_CHANGE_TYPE_BOOKMARK) }

func (f *findingChanges) deleted() *pb.WatchFindingsResponse {
	f.t.Helper()
	return f.next(pb.ChangeType_CHANGE_TYPE_DELETED)
}

func (s *system) removeHost(name string) {
	s.t.Helper()
	if _, err := s.store.Hosts.Delete(s.t.Context(), name, store.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func TestAWatchOfFindingsSendsThePresentOnesAndThenWhatIsNewChangedOrEnded(t *testing.T) {
	s := start(t)
	s.followFindings()
	s.hosts(1)
	w := s.watchFindings(&pb.WatchFindingsRequest{Kind: "Host"})
	w.reset()
	first := w.put()
	w.bookmark()
	listed := s.findings(&pb.ListFindingsRequest{Kind: "Host"}).GetFindings()
	if f := first.GetFinding(); len(listed) != 1 || f.GetId() != listed[0].GetId() || f.GetCause() != listed[0].GetCause() ||
		f.GetObjectCount() != 1 || first.GetKey() == "" {
		t.Errorf("%v, and a list has %v", first, listed)
	}
	s.host("another")
	second := w.put()
	w.bookmark()
	if second.GetKey() != first.GetKey() || second.GetFinding().GetObjectCount() != 2 {
		t.Errorf("%v after %v", second, first)
	}
	s.removeHost("another")
	w.put()
	w.bookmark()
	s.removeHost("h-000")
	if last := w.deleted(); last.GetKey() != first.GetKey() || last.GetFinding().GetId() != first.GetFinding().GetId() {
		t.Errorf("%v ended, not %v", last, first)
	}
	w.bookmark()
	s.hosts(1)
	if again := w.put(); again.GetKey() != first.GetKey() {
		t.Errorf("%v", again)
	}
	w.bookmark()
}

func TestAWatchOfFindingsWithoutAFilterSendsAllKindsAndNames(t *testing.T) {
	s := start(t)
	s.followFindings()
	s.hosts(1)
	w := s.watchFindings(&pb.WatchFindingsRequest{})
	w.reset()
	kinds := map[string]bool{}
	for range 2 {
		kinds[w.put().GetFinding().GetObject().GetKind()] = true
	}
	w.bookmark()
	if !kinds["Host"] || !kinds["ControlPlane"] {
		t.Errorf("%v", kinds)
	}
}

func TestAWatchOfFindingsOfEachObjectSendsOnlyTheObjectThatChanges(t *testing.T) {
	s := start(t)
	s.followFindings()
	s.hosts(3)
	all := s.watchFindings(&pb.WatchFindingsRequest{Kind: "host", EachObject: true})
	one := s.watchFindings(&pb.WatchFindingsRequest{Name: "h-001", EachObject: true})
	all.reset()
	for range 3 {
		all.put()
	}
	all.bookmark()
	one.reset()
	one.put()
	one.bookmark()
	s.removeHost("h-000")
	if change := all.deleted(); change.GetFinding().GetObject().GetName() != "h-000" {
		t.Errorf("%v", change)
	}
	all.bookmark()
	s.removeHost("h-001")
	for _, w := range []*findingChanges{all, one} {
		if change := w.deleted(); change.GetFinding().GetObject().GetName() != "h-001" {
			t.Errorf("%v", change)
		}
	}
}

func TestARequestToWatchFindingsIsChecked(t *testing.T) {
	s := start(t)
	stream, err := pb.NewFindingServiceClient(s.as("reader")).WatchFindings(t.Context(), &pb.WatchFindingsRequest{MinSeverity: 9})
	if err == nil {
		_, err = stream.Recv()
	}
	wantField(t, err, codes.InvalidArgument, "minSeverity")
}
