package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestLoadsAreListedInPagesOfFiveHundredInTheOrderOfNames(t *testing.T) {
	s := start(t)
	s.follow()
	s.hosts(501)
	client := pb.NewLoadServiceClient(s.as("reader"))
	page, err := client.ListLoads(t.Context(), &pb.ListLoadsRequest{Kind: "Host"})
	if err != nil || len(page.GetLoads()) != 500 || page.GetNextPageToken() == "" {
		t.Fatalf("a page of %d, token %q, %v", len(page.GetLoads()), page.GetNextPageToken(), err)
	}
	last := page.GetLoads()[499].GetObject().GetName()
	page, err = client.ListLoads(t.Context(), &pb.ListLoadsRequest{Kind: "Host", PageToken: page.GetNextPageToken()})
	if err != nil || len(page.GetLoads()) != 1 || page.GetNextPageToken() != "" || page.GetLoads()[0].GetObject().GetName() <= last {
		t.Errorf("the second page: %v %v", page, err)
	}
}

// Without a gateway there is nothing to wait for. An object without a report has no interval, and a volume without an owner no gateway.
func TestAnObjectThatNoGatewayReportsHasNoInterval(t *testing.T) {
	s := start(t)
	s.follow()
	s.hosts(1)
	page, err := pb.NewLoadServiceClient(s.as("admin")).ListLoads(t.Context(), &pb.ListLoadsRequest{Kind: "Host"})
	if err != nil || len(page.GetLoads()) != 1 || page.GetLoads()[0].GetInterval() != nil || page.GetLoads()[0].GetGateway() != "" {
		t.Errorf("%v %v", page, err)
	}
}

func TestARequestForLoadsIsChecked(t *testing.T) {
	s := start(t)
	s.follow()
	client := pb.NewLoadServiceClient(s.as("admin"))
	for field, request := range map[string]*pb.ListLoadsRequest{
		"kind": {Kind: "Fabric"}, "pageSize": {Kind: "Host", PageSize: -1}, "pageToken": {Kind: "Host", PageToken: "x"},
	} {
		_, err := client.ListLoads(t.Context(), request)
		wantField(t, err, codes.InvalidArgument, field)
	}
}
