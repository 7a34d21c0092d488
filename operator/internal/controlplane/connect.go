package controlplane

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Bounds of the connection.
const (
	// callTimeout bounds one call: a control plane that does not answer must not hold a worker.
	callTimeout = 10 * time.Second
	// pingAfter and pingWait find a control plane that is gone without a word; it takes pings each second.
	pingAfter = 10 * time.Second
	pingWait  = 5 * time.Second
)

// Options say where the control plane is and who asks.
type Options struct {
	// Server is host:port.
	Server string
	// CA, Certificate and Key are files in PEM; the certificate's organization is sluice:operator. They are read
	// anew when they change: renewal needs no restart.
	CA, Certificate, Key string
	// Insecure does without TLS, to a loopback address only.
	Insecure bool
}

// AddFlags adds the flags that set the options; what is said before each usage tells whom they are for.
func (o *Options) AddFlags(flags *pflag.FlagSet, whose string) {
	flags.StringVar(&o.Server, "server", "127.0.0.1:7460", whose+"host:port of the control plane")
	flags.StringVar(&o.CA, "tls-ca", "", whose+"CA of the control plane (PEM)")
	flags.StringVar(&o.Certificate, "tls-cert", "", whose+"the own certificate, of the organization sluice:operator (PEM)")
	flags.StringVar(&o.Key, "tls-key", "", whose+"its key (PEM)")
	flags.BoolVar(&o.Insecure, "insecure", false, whose+"a control plane without TLS, on loopback only; for gateways, too")
}

// Connect makes a connection, which is opened when it is used and again when it breaks.
func Connect(options Options) (*grpc.ClientConn, error) {
	with, err := options.credentials()
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	return grpc.NewClient(options.Server, grpc.WithTransportCredentials(with),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingWait, PermitWithoutStream: true}),
		grpc.WithUnaryInterceptor(bounded))
}

// bounded gives each call its time, and counts it.
func bounded(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn,
	invoke grpc.UnaryInvoker, with ...grpc.CallOption,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begun := time.Now()
	err := invoke(ctx, method, request, reply, connection, with...)
	observe(method, err, time.Since(begun))
	return err
}

func (o Options) credentials() (credentials.TransportCredentials, error) {
	if o.Insecure {
		return insecure.NewCredentials(), o.loopback()
	}
	return newTrust(o)
}

func (o Options) loopback() error {
	host, _, err := net.SplitHostPort(o.Server)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--insecure is for loopback only, and %s is not", o.Server)
	}
	return nil
}
