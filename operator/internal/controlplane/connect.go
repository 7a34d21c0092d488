package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

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
	// CA, Certificate and Key are files in PEM; the certificate's organization is sluice:operator. Key and certificate are
	// read anew for each connection, so that renewal needs no restart.
	CA, Certificate, Key string
	// Insecure does without TLS, to a loopback address only.
	Insecure bool
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
	if o.CA == "" || o.Certificate == "" || o.Key == "" {
		return nil, errors.New("no certificate: give --tls-ca, --tls-cert and --tls-key (`sluice-controlplane certs` makes " +
			"an operator's), or --insecure for a control plane without TLS on loopback")
	}
	text, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, fmt.Errorf("TLS CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("TLS CA %s holds no certificate in PEM", o.CA)
	}
	own := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
		return &pair, err
	}
	if _, err := own(nil); err != nil {
		return nil, fmt.Errorf("TLS certificate %s: %w", o.Certificate, err)
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, GetClientCertificate: own}), nil
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
