package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// catalogue serves a list of volumes in pages. Its page tokens are positions in the list.
type catalogue struct {
	pb.UnimplementedVolumeServiceServer
	names    []string
	requests []*pb.ListVolumesRequest
	// failAt is a position whose page fails with UNAVAILABLE; 0: none.
	failAt int
	// stuck makes each token the same one.
	stuck bool
}

func (c *catalogue) ListVolumes(_ context.Context, request *pb.ListVolumesRequest) (*pb.ListVolumesResponse, error) {
	c.requests = append(c.requests, request)
	at := 0
	if token := request.GetOptions().GetPageToken(); token != "" {
		var err error
		if at, err = strconv.Atoi(token); err != nil {
			return nil, status.Error(codes.InvalidArgument, "page token")
		}
	}
	if at > 0 && at == c.failAt {
		return nil, status.Error(codes.Unavailable, "the replica stops")
	}
	size := int(request.GetOptions().GetPageSize())
	if size == 0 {
		size = 500
	}
	page := &pb.ListVolumesResponse{}
	end := min(at+size, len(c.names))
	for _, name := range c.names[at:end] {
		page.Volumes = append(page.Volumes, &pb.Volume{Meta: &pb.ObjectMeta{Name: name}})
	}
	if end < len(c.names) {
		page.NextPageToken = strconv.Itoa(end)
	}
	if c.stuck {
		page.NextPageToken = "1"
	}
	return page, nil
}

// serve makes a gRPC server and a client of it.
func serve(t *testing.T, volumes *catalogue) pb.VolumeServiceClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterVolumeServiceServer(server, volumes)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	connection, err := client.Connect(client.Options{Endpoints: []string{listener.Addr().String()}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return pb.NewVolumeServiceClient(connection)
}

func names(count int) []string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("volume-%02d", i))
	}
	return all
}

// listed are the names that an iteration yields, and its error.
func listed(t *testing.T, service pb.VolumeServiceClient, request *pb.ListVolumesRequest) (found []string, err error) {
	t.Helper()
	for volume, problem := range client.All(t.Context(), service.ListVolumes, request, (*pb.ListVolumesResponse).GetVolumes) {
		if err != nil {
			t.Fatal("the iteration goes on after an error")
		}
		if err = problem; err == nil {
			found = append(found, volume.GetMeta().GetName())
		}
	}
	return found, err
}

func TestAllReturnsTheElementsOfEveryPageInOrder(t *testing.T) {
	for _, count := range []int{0, 1, 3, 4, 9, 10} {
		volumes := &catalogue{names: names(count)}
		service := serve(t, volumes)
		found, err := listed(t, service, &pb.ListVolumesRequest{Options: &pb.ListOptions{PageSize: 3}})
		if err != nil || !slices.Equal(found, volumes.names) {
			t.Errorf("of %d volumes: %v, %v", count, found, err)
		}
		if pages := max(1, (count+2)/3); len(volumes.requests) != pages {
			t.Errorf("of %d volumes: %d calls, want %d", count, len(volumes.requests), pages)
		}
	}
}

func TestARequestWithoutOptionsReachesLaterPages(t *testing.T) {
	volumes := &catalogue{names: names(501)}
	request := &pb.ListVolumesRequest{}
	if found, err := listed(t, serve(t, volumes), request); err != nil || len(found) != 501 || len(volumes.requests) != 2 {
		t.Errorf("%d volumes in %d calls, %v", len(found), len(volumes.requests), err)
	}
	if request.GetOptions() != nil {
		t.Errorf("the caller's request has changed: %v", request)
	}
}

func TestEveryPageIsAskedForWithTheOptionsOfTheRequest(t *testing.T) {
	volumes := &catalogue{names: names(10)}
	labels := map[string]string{"app": "shop"}
	request := &pb.ListVolumesRequest{Options: &pb.ListOptions{PageSize: 2, PageToken: "3", LabelSelector: labels}}
	found, err := listed(t, serve(t, volumes), request)
	if err != nil || !slices.Equal(found, volumes.names[3:]) {
		t.Errorf("from the fourth on: %v, %v", found, err)
	}
	for _, asked := range volumes.requests {
		if asked.GetOptions().GetPageSize() != 2 || asked.GetOptions().GetLabelSelector()["app"] != "shop" {
			t.Errorf("%v", asked)
		}
	}
	if request.GetOptions().GetPageToken() != "3" {
		t.Errorf("the caller's request has changed: %v", request)
	}
}

func TestAnErrorOfALaterPageEndsTheIteration(t *testing.T) {
	volumes := &catalogue{names: names(10), failAt: 6}
	service := serve(t, volumes)
	request := &pb.ListVolumesRequest{Options: &pb.ListOptions{PageSize: 3}}
	found, err := listed(t, service, request)
	if status.Code(err) != codes.Unavailable || !slices.Equal(found, volumes.names[:6]) || len(volumes.requests) != 3 {
		t.Errorf("%v, %v, %d calls", found, err, len(volumes.requests))
	}
	all, err := client.Collect(client.All(t.Context(), service.ListVolumes, request, (*pb.ListVolumesResponse).GetVolumes))
	if status.Code(err) != codes.Unavailable || all != nil {
		t.Errorf("a part of the list is returned as the whole: %v, %v", all, err)
	}
}

func TestACallerThatStopsCausesNoFurtherCall(t *testing.T) {
	volumes := &catalogue{names: names(10)}
	for volume, err := range client.All(t.Context(), serve(t, volumes).ListVolumes,
		&pb.ListVolumesRequest{Options: &pb.ListOptions{PageSize: 3}}, (*pb.ListVolumesResponse).GetVolumes) {
		if err != nil {
			t.Fatal(err)
		}
		if volume.GetMeta().GetName() == "volume-02" { // the last one of the first page
			break
		}
	}
	if len(volumes.requests) != 1 {
		t.Errorf("%d calls", len(volumes.requests))
	}
}

func TestACancelledContextEndsTheIteration(t *testing.T) {
	volumes := &catalogue{names: names(10)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	pages := 0
	for _, err := range client.Pages(ctx, serve(t, volumes).ListVolumes, &pb.ListVolumesRequest{Options: &pb.ListOptions{PageSize: 3}}) {
		cancel()
		last = err
		pages++
	}
	if pages != 2 || status.Code(last) != codes.Canceled {
		t.Errorf("%d pages, %v", pages, last)
	}
}

func TestATokenThatRepeatsEndsTheIteration(t *testing.T) {
	volumes := &catalogue{names: names(3), stuck: true}
	if _, err := listed(t, serve(t, volumes), &pb.ListVolumesRequest{}); !errors.Is(err, client.ErrRepeatedPage) || len(volumes.requests) != 2 {
		t.Errorf("%v after %d calls", err, len(volumes.requests))
	}
}
