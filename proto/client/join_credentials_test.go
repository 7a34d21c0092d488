package client

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// joinListener serves with a certificate for an address, sent with that of the authority, and returns where.
func joinListener(t *testing.T, authority *authority, address string) string {
	t.Helper()
	files := filesIn(t.TempDir(), "server")
	authority.issue(files, address, time.Hour)
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	pair.Certificate = append(pair.Certificate, authority.certificate.Raw)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// The server has no service: a call that reaches it ends with UNIMPLEMENTED.
func TestAJoinTokenConnectsOnlyToAServerOfItsAuthority(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	token := NewJoinToken(ours.certificate.Raw)
	call := func(address string) error {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(token.Credentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		_, err = healthpb.NewHealthClient(connection).Check(t.Context(), &healthpb.HealthCheckRequest{})
		return err
	}
	if err := call(joinListener(t, ours, "127.0.0.1")); status.Code(err) != codes.Unimplemented {
		t.Errorf("a server of the authority: %v", err)
	}
	if err := call(joinListener(t, foreign, "127.0.0.1")); err == nil || !strings.Contains(err.Error(), "does not show the authority of the token") {
		t.Errorf("a server of another authority: %v", err)
	}
	if err := call(joinListener(t, ours, "192.0.2.1")); err == nil || !strings.Contains(err.Error(), "192.0.2.1, not 127.0.0.1") {
		t.Errorf("a server of another address: %v", err)
	}
}
