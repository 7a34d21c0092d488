package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/attempts"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Bounds of the join listener, whose clients show no certificate.
const (
	// maxJoinMessage bounds a request, in bytes: 17 certificate requests of 16 KiB fit.
	maxJoinMessage = 512 << 10
	// maxJoining bounds the connections at a time. Further ones wait in the kernel.
	maxJoining = 64
	// joinIdle and joinAge end connections, so that idle ones keep no place.
	joinIdle = 10 * time.Second
	joinAge  = 2 * time.Minute
)

// JoinListener serves only JoinService, over TLS without client certificates.
type JoinListener struct{ *grpc.Server }

// NewJoinListener returns the server of a join listener, which uses the certificate of the API. Errors: those of client.NewReloader.
func (s *Server) NewJoinListener(files client.Files, service pb.JoinServiceServer) (*JoinListener, error) {
	reloader, err := client.NewReloader(files, reloadEvery)
	if err != nil {
		return nil, err
	}
	guard := &joinGate{gate: s.gate, attempts: attempts.New()}
	made := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(joinTLS(reloader))), grpc.UnaryInterceptor(guard.unary), grpc.MaxRecvMsgSize(maxJoinMessage),
		grpc.MaxConcurrentStreams(1), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: joinIdle, MaxConnectionAge: joinAge, Time: pingAfter, Timeout: pingWait}),
	)
	pb.RegisterJoinServiceServer(made, service)
	return &JoinListener{made}, nil
}

// Serve accepts connections until the server stops.
func (j *JoinListener) Serve(listener net.Listener) error {
	return j.Server.Serve(netutil.LimitListener(listener, maxJoining))
}

// joinTLS sends the certificate with that of the authority that signed it. Clients know only the hash of the latter.
func joinTLS(reloader *client.Reloader) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := reloader.Current()
			chain := now.Certificate
			chain.Certificate = append(append([][]byte{}, chain.Certificate...), issuers(chain.Leaf, now.AuthorityPEM())...)
			return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{chain}, NextProtos: []string{"h2"}}, nil
		},
	}
}

// issuers returns the certificates (DER) in a text (PEM) that signed a certificate.
func issuers(certificate *x509.Certificate, text []byte) [][]byte {
	var found [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if authority, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.CheckSignatureFrom(authority) == nil {
			found = append(found, authority.Raw)
		}
	}
	return found
}

// joinGate precedes every call to the join listener: it limits failed attempts, validates the message and writes the audit log.
type joinGate struct {
	gate     *gate
	attempts *attempts.Limiter
}

func (j *joinGate) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (response any, err error) {
	begun := time.Now()
	from, _ := peer.FromContext(ctx) // gRPC's server always sets it
	defer func() {
		if problem := recover(); problem != nil {
			err = j.gate.panicked(info.FullMethod, problem)
		}
		j.record(ctx, info.FullMethod, request, from.Addr, begun, err)
	}()
	if !j.attempts.Permitted(from.Addr) {
		return nil, status.Errorf(codes.ResourceExhausted, "too many failed attempts to join from this address: wait %s, and use a valid token",
			attempts.Every)
	}
	if err := j.gate.valid(request); err != nil {
		return nil, err
	}
	response, err = handler(ctx, request)
	if status.Code(err) == codes.Unauthenticated {
		j.attempts.Failed(from.Addr)
	}
	return response, err
}

// record counts the call and writes it to the audit log.
func (j *joinGate) record(ctx context.Context, method string, request any, from net.Addr, begun time.Time, err error) {
	code := status.Code(err)
	j.gate.metrics.observeCall(method, code, time.Since(begun))
	level, node := slog.LevelInfo, ""
	if err != nil {
		level = slog.LevelWarn
	}
	if asked, ok := request.(*pb.JoinRequest); ok {
		node = Shortened(asked.GetNode())
	}
	j.gate.log.LogAttrs(ctx, level, "audit", slog.String("caller", from.String()), slog.String("role", "token"),
		slog.String("method", method), slog.String("object", node), slog.String("result", code.String()))
}
