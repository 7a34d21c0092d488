package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// lookEvery is how often the files of certificates are compared with those that a connection was made with.
const lookEvery = 5 * time.Second

// trust reads CA, certificate and key anew for each connection, and ends a connection once they have changed, so that a renewed
// certificate, and a mended one, is in use seconds later. It is a gRPC client's half of TLS.
type trust struct {
	credentials.TransportCredentials
	options Options
}

func newTrust(options Options) (*trust, error) {
	if options.CA == "" || options.Certificate == "" || options.Key == "" {
		return nil, errors.New("no certificate: give --tls-ca, --tls-cert and --tls-key (`sluice-controlplane certs` makes " +
			"an operator's), or --insecure for a control plane without TLS on loopback")
	}
	files, err := options.read()
	if err != nil {
		return nil, err
	}
	config, err := files.config(options)
	if err != nil {
		return nil, err
	}
	return &trust{TransportCredentials: credentials.NewTLS(config), options: options}, nil
}

// Clone implements credentials.TransportCredentials.
func (t *trust) Clone() credentials.TransportCredentials {
	return &trust{TransportCredentials: t.TransportCredentials.Clone(), options: t.options}
}

// ClientHandshake implements credentials.TransportCredentials.
func (t *trust) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	files, err := t.options.read()
	if err != nil {
		return nil, nil, err
	}
	config, err := files.config(t.options)
	if err != nil {
		return nil, nil, err
	}
	if leaf := config.Certificates[0].Leaf; time.Now().After(leaf.NotAfter) {
		return nil, nil, fmt.Errorf("the operator's own certificate %s has expired on %s: renew it (it is read anew by itself)",
			t.options.Certificate, leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	secured, info, err := credentials.NewTLS(config).ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	connection := &passing{Conn: secured, closed: make(chan struct{})}
	go connection.endWhenChanged(t.options, files)
	return connection, info, nil
}

// passing is a connection that ends when the certificates it was made with are replaced.
type passing struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (p *passing) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Conn.Close()
}

func (p *passing) endWhenChanged(options Options, madeWith pemFiles) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-p.closed:
			return
		case <-look.C:
		}
		now, err := options.read()
		if err != nil || now.same(madeWith) {
			continue // half written, perhaps: the old ones serve until the next look
		}
		if _, err := now.config(options); err == nil {
			_ = p.Close()
			return
		}
	}
}

// pemFiles are what the three files hold.
type pemFiles struct{ ca, certificate, key []byte }

func (o Options) read() (files pemFiles, err error) {
	if files.ca, err = os.ReadFile(o.CA); err != nil {
		return files, fmt.Errorf("TLS CA: %w", err)
	}
	if files.certificate, err = os.ReadFile(o.Certificate); err != nil {
		return files, fmt.Errorf("TLS certificate: %w", err)
	}
	if files.key, err = os.ReadFile(o.Key); err != nil {
		return files, fmt.Errorf("TLS key: %w", err)
	}
	return files, nil
}

func (f pemFiles) same(other pemFiles) bool {
	return bytes.Equal(f.ca, other.ca) && bytes.Equal(f.certificate, other.certificate) && bytes.Equal(f.key, other.key)
}

func (f pemFiles) config(o Options) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(f.ca) {
		return nil, fmt.Errorf("TLS CA %s holds no certificate in PEM", o.CA)
	}
	pair, err := tls.X509KeyPair(f.certificate, f.key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", o.Certificate, o.Key, err)
	}
	// No session is resumed: each handshake proves again who is there.
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: []tls.Certificate{pair}}, nil
}
