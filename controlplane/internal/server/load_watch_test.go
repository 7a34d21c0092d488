package server_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func (s *system) watchLoads(ctx context.Context, request *pb.WatchLoadsRequest) pb.LoadService_WatchLoadsClient {
	s.t.Helper()
	stream, err := pb.NewLoadServiceClient(s.as("reader")).WatchLoads(ctx, request)
	if err != nil {
		s.t.Fatal(err)
	}
	return stream
}

func TestLoadsAreSentAgainAndAgainOfAllObjectsOrOfTheNamedOnes(t *testing.T) {
	s := start(t)
	s.follow()
	s.hosts(3)
	ctx, stop := context.WithCancel(t.Context())
	all := s.watchLoads(ctx, &pb.WatchLoadsRequest{Kind: "Host"})
	named := s.watchLoads(ctx, &pb.WatchLoadsRequest{Kind: "Host", Names: []string{"h-001", "absent"}})
	for range 2 {
		loads, err := all.Recv()
		if err != nil || len(loads.GetLoads()) != 3 || loads.GetMore() {
			t.Fatalf("%v %v", loads, err)
		}
		loads, err = named.Recv()
		if err != nil || len(loads.GetLoads()) != 1 || loads.GetLoads()[0].GetObject().GetName() != "h-001" {
			t.Fatalf("%v %v", loads, err)
		}
	}
	stop()
	for _, stream := range []pb.LoadService_WatchLoadsClient{all, named} {
		_, err := stream.Recv()
		wantCode(t, err, codes.Canceled)
	}
}

func TestARequestToWatchLoadsIsChecked(t *testing.T) {
	s := start(t)
	receive := func(request *pb.WatchLoadsRequest) error {
		_, err := s.watchLoads(t.Context(), request).Recv()
		return err
	}
	wantCode(t, receive(&pb.WatchLoadsRequest{Kind: "Host"}), codes.Unavailable) // the view has not read everything yet
	s.follow()
	wantField(t, receive(&pb.WatchLoadsRequest{Kind: "Fabric"}), codes.InvalidArgument, "kind")
	wantField(t, receive(&pb.WatchLoadsRequest{Kind: "Host", Names: make([]string, 101)}), codes.InvalidArgument, "names")
}
