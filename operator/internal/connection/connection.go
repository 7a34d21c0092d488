// Package connection has the flags of the operator's and the CSI driver's connection to the control plane, and metrics of its calls.
package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"sluice.dev/sluice/proto/client"
)

// callTimeout bounds one call: a control plane that does not answer must not block a worker.
const callTimeout = 10 * time.Second

// Options name the control plane and the caller's certificate.
type Options struct {
	// Server is host:port.
	Server string
	// TLS has a certificate of the organization sluice:operator, or sluice:csi for the CSI driver. Renewal needs no restart: a
	// connection ends when its files have changed.
	TLS client.Files
	// Insecure disables TLS, for a loopback address only.
	Insecure bool
}

// AddFlags adds the flags that set the options. `whose` is the prefix of each usage text. `organization` is the organization that
// the control plane requires in the certificate.
func (o *Options) AddFlags(flags *pflag.FlagSet, whose, organization string) {
	flags.StringVar(&o.Server, "server", "127.0.0.1:7460", whose+"host:port of the control plane")
	flags.StringVar(&o.TLS.CA, "tls-ca", "", whose+"CA of the control plane (PEM)")
	flags.StringVar(&o.TLS.Certificate, "tls-cert", "", whose+"the own certificate, of the organization "+organization+" (PEM)")
	flags.StringVar(&o.TLS.Key, "tls-key", "", whose+"its key (PEM)")
	flags.BoolVar(&o.Insecure, "insecure", false, whose+"a control plane without TLS, on loopback only; for gateways, too")
}

// Open returns a connection that is established when a call needs it, and again after a failure. Its calls are counted. Errors:
// Insecure with an address that is not loopback; without Insecure, a file that is not named or cannot be used.
func Open(options Options) (*grpc.ClientConn, error) {
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	connection, err := client.Connect(client.Options{
		Endpoints: []string{options.Server}, TLS: options.TLS, Insecure: options.Insecure,
		CallTimeout: callTimeout, DetectSilence: true, CloseOnRenewal: true,
	}, grpc.WithChainUnaryInterceptor(counted))
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	return connection, nil
}

// counted records the duration and result of each call.
func counted(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker,
	with ...grpc.CallOption,
) error {
	begun := time.Now()
	err := invoke(ctx, method, request, reply, connection, with...)
	observe(method, err, time.Since(begun))
	return err
}

func (o Options) check() error {
	if o.Insecure {
		return o.loopback()
	}
	if o.TLS.CA == "" || o.TLS.Certificate == "" || o.TLS.Key == "" {
		return errors.New("no certificate: give --tls-ca, --tls-cert and --tls-key (`sluice-controlplane certs` makes " +
			"an operator's), or --insecure for a control plane without TLS on loopback")
	}
	return nil
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
