package api

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// faultsOf returns an equal fault of each named host.
func faultsOf(hosts ...string) []findings.Item {
	var items []findings.Item
	for _, name := range hosts {
		items = append(items, findings.Item{Rule: findings.Rules[0], Severity: findings.Advice, Cause: "is wrong", Since: received,
			Ref: findings.Ref{Kind: model.KindHost, Name: name}})
	}
	return items
}

func TestWatchersShareEachMessageAndAnUnchangedFindingIsNotSentAgain(t *testing.T) {
	feed := newFindingFeed()
	_, leave := feed.join()
	defer leave()
	compute := func(hosts ...string) { feed.begin(); feed.publish(faultsOf(hosts...)) }
	requests := []*pb.WatchFindingsRequest{{EachObject: true}, {EachObject: true, Kind: "Host"}}
	sent := []map[string]*pb.Finding{{}, {}}
	changes := func(set *findingSet) (all [][]*pb.WatchFindingsResponse) {
		for i, request := range requests {
			all = append(all, findingChanges(request, set, sent[i]))
		}
		return all
	}
	compute("a", "b")
	set, err := feed.next(t.Context(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	first := changes(set)
	if len(first[0]) != 2 || len(first[1]) != 2 || first[0][0].GetFinding() != first[1][0].GetFinding() {
		t.Errorf("the first messages: %v", first)
	}
	compute("a", "b")
	if feed.latest != set {
		t.Error("equal findings are distributed again")
	}
	compute("b", "c")
	if set, err = feed.next(t.Context(), set, 0); err != nil {
		t.Fatal(err)
	}
	for _, second := range changes(set) {
		if len(second) != 2 || second[0].GetType() != pb.ChangeType_CHANGE_TYPE_PUT || second[0].GetFinding().GetObject().GetName() != "c" ||
			second[1].GetType() != pb.ChangeType_CHANGE_TYPE_DELETED || second[1].GetFinding().GetObject().GetName() != "a" {
			t.Errorf("the second messages: %v", second)
		}
	}
}

func TestASlowWatcherReceivesTheLatestFindingsOnly(t *testing.T) {
	feed := newFindingFeed()
	_, leave := feed.join()
	defer leave()
	feed.begin()
	feed.publish(faultsOf("a"))
	set, err := feed.next(t.Context(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c", "d"} {
		feed.publish(faultsOf(name))
	}
	if set, err = feed.next(t.Context(), set, 0); err != nil || len(set.eachObject) != 1 || set.eachObject[0].Ref.Name != "d" {
		t.Errorf("%v %v", set, err)
	}
}

func TestAWatcherReceivesNoFindingsOfAComputationThatBeganBeforeIt(t *testing.T) {
	feed := newFindingFeed()
	_, leave := feed.join()
	feed.begin()
	begun, leaveToo := feed.join()
	feed.publish(faultsOf("former"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if set, err := feed.next(ctx, nil, begun); err == nil {
		t.Errorf("%v", set)
	}
	leave()
	if !feed.begin() {
		t.Error("nothing is computed for the second watcher")
	}
	leaveToo()
	if feed.begin() {
		t.Error("findings are computed without a watcher")
	}
}

// watcherStream is the stream of a watcher that receives nothing.
type watcherStream struct {
	grpc.ServerStreamingServer[pb.WatchFindingsResponse]
	ctx context.Context
}

func (s *watcherStream) Context() context.Context { return s.ctx }

func TestAWatchOfFindingsIsUnavailableIfTheReplicaDoesNotReadEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFindings(nil, view.New(nil, slog.New(slog.DiscardHandler)), nil, prometheus.NewRegistry())
		if err := f.WatchFindings(&pb.WatchFindingsRequest{}, &watcherStream{ctx: t.Context()}); status.Code(err) != codes.Unavailable {
			t.Errorf("%v", err)
		}
	})
}
