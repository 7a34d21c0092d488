package server_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// joins accepts one token.
type joins struct {
	pb.UnimplementedJoinServiceServer
	valid string
}

func (j *joins) Join(_ context.Context, request *pb.JoinRequest) (*pb.JoinResponse, error) {
	if request.GetToken() != j.valid {
		return nil, status.Error(codes.Unauthenticated, "no such token")
	}
	return &pb.JoinResponse{}, nil
}

// joinListener starts a join listener, and returns a connection to it from an address. The credentials of a token of the authority verify it.
func (s *system) joinListener(valid string) func(from string) *grpc.ClientConn {
	s.t.Helper()
	made, err := s.server.NewJoinListener(s.files("server"), &joins{valid: valid})
	if err != nil {
		s.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	go func() { _ = made.Serve(listener) }()
	s.t.Cleanup(made.Stop)
	authority, err := certs.OpenAuthority(s.certs)
	if err != nil {
		s.t.Fatal(err)
	}
	token := client.NewJoinToken(authority.Raw())
	return func(from string) *grpc.ClientConn {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(token.Credentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp", address)
			}))
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
}

func TestFailedAttemptsToJoinAreLimitedPerAddressAndInTheAuditLog(t *testing.T) {
	s := start(t)
	connect := s.joinListener("right")
	guessing, other := pb.NewJoinServiceClient(connect("127.0.0.1")), pb.NewJoinServiceClient(connect("127.0.0.2"))
	try := func(from pb.JoinServiceClient, token string) error {
		_, err := from.Join(t.Context(), &pb.JoinRequest{Token: token, Node: "b"})
		return err
	}
	wantCode(t, try(guessing, "right"), codes.OK)
	for range 5 {
		wantCode(t, try(guessing, "wrong"), codes.Unauthenticated)
	}
	wantCode(t, try(guessing, "right"), codes.ResourceExhausted)
	wantCode(t, try(other, "right"), codes.OK)
	log := s.log.String()
	if strings.Count(log, "role=token method=/sluice.v1.JoinService/Join object=b result=Unauthenticated") != 5 ||
		!strings.Contains(log, "level=WARN msg=audit caller=127.0.0.1:") || strings.Contains(log, "wrong") {
		t.Errorf("the log is %s", log)
	}
	_, err := other.Join(t.Context(), &pb.JoinRequest{Node: "b"})
	wantCode(t, err, codes.InvalidArgument)
}

func TestTheJoinListenerServesNothingElse(t *testing.T) {
	s := start(t)
	connection := s.joinListener("right")("127.0.0.1")
	_, err := pb.NewFabricServiceClient(connection).ListFabrics(t.Context(), &pb.ListFabricsRequest{})
	wantCode(t, err, codes.Unimplemented)
	_, err = pb.NewMembershipServiceClient(connection).ListMembers(t.Context(), &pb.ListMembersRequest{})
	wantCode(t, err, codes.Unimplemented)
}
