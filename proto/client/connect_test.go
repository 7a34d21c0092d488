package client

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// refusing is an address at which nothing listens.
func refusing(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func TestACallReachesTheFirstEndpointThatAnswersUnderItsOwnName(t *testing.T) {
	folder, a := t.TempDir(), newAuthority(t)
	server, own := filesIn(folder, "server"), filesIn(folder, "client")
	a.issue(server, "127.0.0.2", time.Hour)
	a.issue(own, "", time.Hour)
	connection, err := Connect(Options{Endpoints: []string{refusing(t), served(t, "127.0.0.2:0", server, caller{})}, TLS: own})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := pb.NewVolumeServiceClient(connection).GetVolume(t.Context(), &pb.GetVolumeRequest{}); err != nil {
		t.Error(err)
	}
}

func TestAnEndpointWhoseCertificateNamesAnotherHostIsRefused(t *testing.T) {
	folder, a := t.TempDir(), newAuthority(t)
	server, own := filesIn(folder, "server"), filesIn(folder, "client")
	a.issue(server, "127.0.0.1", time.Hour) // the name of the first endpoint only
	a.issue(own, "", time.Hour)
	connection, err := Connect(Options{Endpoints: []string{refusing(t), served(t, "127.0.0.2:0", server, caller{})}, TLS: own})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := pb.NewVolumeServiceClient(connection).GetVolume(t.Context(), &pb.GetVolumeRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
}

// deadline answers each call with epoch 1 if the call has a deadline.
type deadline struct {
	pb.UnimplementedVolumeServiceServer
}

func (deadline) GetVolume(ctx context.Context, _ *pb.GetVolumeRequest) (*pb.GetVolumeResponse, error) {
	found := &pb.VolumeStatus{}
	if _, set := ctx.Deadline(); set {
		found.Epoch = 1
	}
	return &pb.GetVolumeResponse{Volume: &pb.Volume{Status: found}}, nil
}

func TestACallHasADeadlineIfTheOptionsOrItsContextSetOne(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterVolumeServiceServer(server, deadline{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	bounded, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		timeout time.Duration
		ctx     context.Context
		want    uint64
	}{{0, t.Context(), 0}, {time.Hour, t.Context(), 1}, {0, bounded, 1}} {
		connection, err := Connect(Options{Endpoints: []string{listener.Addr().String()}, Insecure: true, CallTimeout: c.timeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		answer, err := pb.NewVolumeServiceClient(connection).GetVolume(c.ctx, &pb.GetVolumeRequest{})
		if err != nil || answer.GetVolume().GetStatus().GetEpoch() != c.want {
			t.Errorf("timeout %v: %v, %v", c.timeout, answer, err)
		}
	}
}

func TestACallThatIsNotAnsweredEndsAfterTheTimeoutOfTheOptions(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	connection, err := Connect(Options{Endpoints: []string{listener.Addr().String()}, Insecure: true, CallTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_, err = pb.NewVolumeServiceClient(connection).GetVolume(t.Context(), &pb.GetVolumeRequest{})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
}

func TestConnectRefusesOptionsThatCannotBeMeant(t *testing.T) {
	for want, options := range map[string]Options{
		"no endpoint":             {Insecure: true},
		`"192.0.2.1" is not host`: {Insecure: true, Endpoints: []string{"192.0.2.2:7460", "192.0.2.1"}},
		"TLS needs a CA":          {Endpoints: []string{"192.0.2.1:7460"}},
	} {
		if connection, err := Connect(options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v, want %q", options, connection, err, want)
		}
	}
}
