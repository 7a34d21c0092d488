package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// Times of Options.DetectSilence. The control plane permits a ping each second.
const (
	silenceBeforePing = 10 * time.Second
	pingAnswer        = 5 * time.Second
)

// Options describe a connection to a control plane.
type Options struct {
	// Endpoints are host:port of replicas. A connection uses the first one that answers, and after a failure tries them again in this order.
	// With several, the certificate of each has to name the host of its endpoint.
	Endpoints []string
	// TLS names the client's certificate and the CA of the control plane. Not used with Insecure.
	TLS Files
	// Credentials replace TLS if they are not nil, for a certificate that is in no file.
	Credentials credentials.TransportCredentials
	// Insecure connects without TLS.
	Insecure bool
	// CallTimeout bounds each unary call, together with the deadline of the call's context. 0: only the context does. Streams are not bounded.
	CallTimeout time.Duration
	// DetectSilence ends a connection, with UNAVAILABLE for its calls, within 15 s after its peer stopped to answer: a ping after 10 s of
	// silence, 5 s for the answer. Without it a stream to a replica that has lost its power lasts until TCP gives it an error.
	DetectSilence bool
	// CloseOnRenewal ends a connection, with UNAVAILABLE for its calls, within 5 s after the content of a file of TLS changed. gRPC then
	// connects with the new content. Without it an open connection keeps its certificate, and the next one uses the new content.
	CloseOnRenewal bool
}

// maxMessage bounds a received message, in bytes.
const maxMessage = 16 << 20

// Connect returns a connection that opens when a call needs it, and again after it broke. `more` are further options, which take
// precedence. Errors: no endpoint; several endpoints, of which one is not host:port; those of NewReloader.
func Connect(options Options, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	target, dial, err := target(options.Endpoints)
	if err != nil {
		return nil, err
	}
	with, err := options.credentials()
	if err != nil {
		return nil, err
	}
	// A page has at most 1 MiB, but one object can be larger: a target with thousands of LUNs and hosts.
	dial = append(dial, grpc.WithTransportCredentials(with), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if options.CallTimeout > 0 {
		dial = append(dial, grpc.WithChainUnaryInterceptor(bounded(options.CallTimeout)))
	}
	if options.DetectSilence {
		dial = append(dial, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: silenceBeforePing, Timeout: pingAnswer,
			PermitWithoutStream: true}))
	}
	return grpc.NewClient(target, append(dial, more...)...)
}

func (o Options) credentials() (credentials.TransportCredentials, error) {
	switch {
	case o.Credentials != nil:
		return o.Credentials, nil
	case o.Insecure:
		return insecure.NewCredentials(), nil
	case o.CloseOnRenewal:
		return newCredentials(o.TLS, renewalCheck)
	}
	return newCredentials(o.TLS, 0)
}

// target is what gRPC connects to. gRPC's names of targets stand for one host each, so several endpoints need a resolver of their own.
func target(endpoints []string) (string, []grpc.DialOption, error) {
	switch len(endpoints) {
	case 0:
		return "", nil, errors.New("no endpoint of a control plane: name host:port of at least one replica")
	case 1:
		return endpoints[0], nil, nil
	}
	var addresses []resolver.Address
	for _, endpoint := range endpoints {
		if _, _, err := net.SplitHostPort(endpoint); err != nil {
			return "", nil, fmt.Errorf("endpoint %q is not host:port: %w", endpoint, err)
		}
		// ServerName is what TLS compares with the certificate.
		addresses = append(addresses, resolver.Address{Addr: endpoint, ServerName: endpoint})
	}
	fixed := manual.NewBuilderWithScheme("sluice")
	fixed.InitialState(resolver.State{Addresses: addresses})
	return "sluice:///control-plane", []grpc.DialOption{grpc.WithResolvers(fixed)}, nil
}

func bounded(timeout time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker,
		with ...grpc.CallOption,
	) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return invoke(ctx, method, request, reply, connection, with...)
	}
}
