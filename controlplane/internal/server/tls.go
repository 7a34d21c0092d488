package server

import (
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

// Files name what one end of a mutually authenticated connection needs, in PEM.
type Files struct {
	// CA that signed the other end's certificate.
	CA string
	// Certificate and Key are this end's own.
	Certificate string
	Key         string
}

// reloadEvery bounds how long a renewed certificate waits to be used.
const reloadEvery = time.Minute

// certificate reads a certificate anew when its file changes, so that renewal (cert-manager's, say) needs no restart.
type certificate struct {
	files Files
	mutex sync.Mutex
	pair  *tls.Certificate
	pool  *x509.CertPool
	at    time.Time
}

func (c *certificate) current() (*tls.Certificate, *x509.CertPool, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.pair != nil && time.Since(c.at) < reloadEvery {
		return c.pair, c.pool, nil
	}
	pair, pool, err := c.read()
	if err != nil {
		if c.pair != nil { // half written: the old one serves until the next look
			return c.pair, c.pool, nil
		}
		return nil, nil, err
	}
	c.pair, c.pool, c.at = pair, pool, time.Now()
	return pair, pool, nil
}

func (c *certificate) read() (*tls.Certificate, *x509.CertPool, error) {
	if c.files.CA == "" || c.files.Certificate == "" || c.files.Key == "" {
		return nil, nil, errors.New("TLS needs a CA, a certificate and a key")
	}
	pair, err := tls.LoadX509KeyPair(c.files.Certificate, c.files.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS certificate %s: %w", c.files.Certificate, err)
	}
	text, err := os.ReadFile(c.files.CA)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("TLS CA %s holds no certificate in PEM", c.files.CA)
	}
	return &pair, pool, nil
}

// ServerTLS asks every client for a certificate of the CA. Files are read anew when they change.
func ServerTLS(files Files) (*tls.Config, error) {
	kept := &certificate{files: files}
	if _, _, err := kept.current(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair, pool, err := kept.current()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*pair},
				ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"},
			}, nil
		},
	}, nil
}

// ClientCredentials proves a client to servers of the CA. Files are read anew when they change.
func ClientCredentials(files Files) (credentials.TransportCredentials, error) {
	kept := &certificate{files: files}
	if _, _, err := kept.current(); err != nil {
		return nil, err
	}
	return &renewed{kept: kept}, nil
}

// renewed makes the TLS of each connection anew. For a client there is no GetConfigForClient, and a tls.Config alone would keep the CA
// of the start: to verify by hand, in VerifyConnection, would need the name that was dialled, which is not told there where it is an
// address.
type renewed struct {
	kept *certificate
	name string
}

func (r *renewed) current() (credentials.TransportCredentials, error) {
	pair, pool, err := r.kept.current()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: r.name,
		// Not Certificates, of which none is sent where the server names other CAs: it shall say what it does not like.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil },
	}), nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (r *renewed) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	now, err := r.current()
	if err != nil {
		return nil, nil, err
	}
	return now.ClientHandshake(ctx, authority, raw)
}

// ServerHandshake implements credentials.TransportCredentials.
func (r *renewed) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("TLS: these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (r *renewed) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (r *renewed) Clone() credentials.TransportCredentials { return &renewed{r.kept, r.name} }

// OverrideServerName implements credentials.TransportCredentials.
func (r *renewed) OverrideServerName(name string) error {
	r.name = name
	return nil
}
