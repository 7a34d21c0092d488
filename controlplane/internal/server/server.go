// Package server serves the services over gRPC: mutual TLS, roles, validation, audit log, metrics, health and reflection.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"buf.build/go/protovalidate"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Bounds of the server.
const (
	// maxMessage bounds one message, in bytes: a target with thousands of LUNs and hosts fits.
	maxMessage = 8 << 20
	// maxStreams bounds the concurrent calls on one connection.
	maxStreams = 1024
	// pingAfter and pingWait detect clients that disappeared without closing the connection.
	pingAfter = 5 * time.Second
	pingWait  = 5 * time.Second
)

// Options configure the server.
type Options struct {
	Store *store.Store
	View  *view.Cache
	// Self is the API's information about this process.
	Self api.ControlPlane
	// Findings serves what is wrong with the system; nil: not served.
	Findings pb.FindingServiceServer
	// Loads serves what objects do now; nil: not served.
	Loads pb.LoadServiceServer
	// Membership serves what concerns the servers of the system; nil: not served.
	Membership pb.MembershipServiceServer
	// Accounts serves local accounts; nil: not served.
	Accounts pb.AccountServiceServer
	// Streams serves the gateways; nil: not served.
	Streams pb.GatewayStreamServiceServer
	// TLS is nil for plain connections, which Insecure must allow.
	TLS *tls.Config
	// Insecure makes every caller an administrator; on loopback only.
	Insecure bool
	// Certificates tracks the expiry of callers' certificates; nil: not tracked.
	Certificates *Certificates
	Log          *slog.Logger
	Registry     prometheus.Registerer
}

// Server is the gRPC server.
type Server struct {
	*grpc.Server
	Health *health.Server
	gate   *gate
	// strangers limits connections that have shown no certificate; nil without TLS.
	strangers *strangers
}

// Serve accepts connections until the server stops.
func (s *Server) Serve(listener net.Listener) error {
	if s.strangers != nil {
		listener = guardedListener{listener, s.strangers}
	}
	return s.Server.Serve(listener)
}

// New returns a server that does not listen yet. It fails if TLS is missing and Insecure is not set.
func New(options Options) (*Server, error) {
	if options.TLS == nil && !options.Insecure {
		return nil, errors.New("the API needs TLS: give a CA, a certificate and a key, or --insecure on loopback")
	}
	validator, err := protovalidate.New()
	if err != nil {
		return nil, fmt.Errorf("validation rules: %w", err)
	}
	gate := &gate{
		insecure: options.Insecure, validator: validator, log: options.Log, certificates: options.Certificates, metrics: newMetrics(options.Registry),
	}
	settings := []grpc.ServerOption{
		grpc.UnaryInterceptor(gate.unary), grpc.StreamInterceptor(gate.stream),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(handshakeTimeout),
		// The streams of a connection that has reached this age continue. Its client opens another one for new calls, with its
		// present certificate.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingWait, MaxConnectionAge: reportAgain}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	var guard *strangers
	if options.TLS != nil {
		guard = newStrangers(options.Log, options.Registry)
		settings = append(settings, grpc.Creds(guardedTLS{credentials.NewTLS(options.TLS), guard}))
	}
	s := &Server{Server: grpc.NewServer(settings...), Health: health.NewServer(), gate: gate, strangers: guard}
	healthpb.RegisterHealthServer(s, s.Health)
	counts := api.NewCounts(options.Store, options.View)
	callers := api.Callers{
		AdoptsAny:         func(ctx context.Context) bool { return IdentityOf(ctx).Role == RoleAdmin },
		ChangesItsOwnOnly: func(ctx context.Context) bool { return IdentityOf(ctx).Role == RoleCSI },
	}
	pb.RegisterVolumeServiceServer(s, api.NewVolumes(options.Store, counts, callers))
	pb.RegisterTargetServiceServer(s, api.NewTargets(options.Store, counts, callers))
	pb.RegisterHostServiceServer(s, api.NewHosts(options.Store, counts, callers))
	pb.RegisterSnapshotServiceServer(s, api.NewSnapshots(options.Store, callers))
	pb.RegisterStoragePoolServiceServer(s, api.NewStoragePools(options.Store, counts))
	pb.RegisterGatewayServiceServer(s, api.NewGateways(options.Store, counts))
	pb.RegisterGatewayPoolServiceServer(s, api.NewGatewayPools(options.Store, counts))
	pb.RegisterFabricServiceServer(s, api.NewFabrics(options.Store, counts))
	pb.RegisterMaintenanceServiceServer(s, api.NewMaintenance(options.Store, options.Self))
	pb.RegisterSessionServiceServer(s, api.NewSessions(options.Store, options.View))
	pb.RegisterEventServiceServer(s, api.NewEvents(options.Store))
	if options.Findings != nil {
		pb.RegisterFindingServiceServer(s, options.Findings)
	}
	if options.Loads != nil {
		pb.RegisterLoadServiceServer(s, options.Loads)
	}
	if options.Membership != nil {
		pb.RegisterMembershipServiceServer(s, options.Membership)
	}
	if options.Accounts != nil {
		pb.RegisterAccountServiceServer(s, options.Accounts)
	}
	if options.Streams != nil {
		pb.RegisterGatewayStreamServiceServer(s, options.Streams)
	}
	reflection.Register(s)
	return s, nil
}

// Listen opens the address; a plain server listens on loopback only.
func Listen(address string, insecure bool) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("API: %w", err)
	}
	if at, ok := listener.Addr().(*net.TCPAddr); insecure && (!ok || !at.IP.IsLoopback()) {
		_ = listener.Close()
		return nil, fmt.Errorf("API: --insecure serves on loopback only, and %s is not", address)
	}
	return listener, nil
}
