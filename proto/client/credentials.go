package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// renewalCheck is how often Options.CloseOnRenewal compares the files with those of a connection.
const renewalCheck = 5 * time.Second

// Credentials returns the client's half of mutual TLS (TLS 1.3). Each handshake uses the present content of the files. A handshake fails
// if the own certificate has expired; the error names the file. Errors: those of NewReloader.
func Credentials(files Files) (credentials.TransportCredentials, error) {
	return newCredentials(files, 0)
}

func newCredentials(files Files, check time.Duration) (*fileCredentials, error) {
	reloader, err := NewReloader(files, 0)
	if err != nil {
		return nil, err
	}
	return &fileCredentials{reloader: reloader, check: check}, nil
}

// fileCredentials make a TLS configuration for each handshake. tls.Config has no such function for clients (GetConfigForClient is a
// server's), and with one configuration a connection would keep the CA of the start. Verification in VerifyConnection is no substitute: it
// does not learn the dialled name where that is an address.
type fileCredentials struct {
	reloader   *Reloader
	serverName string
	// check is how often an open connection compares the files with those of its handshake; 0: never.
	check time.Duration
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *fileCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	loaded, err := c.reloader.current()
	if expired := c.expired(loaded, err); expired != nil {
		return nil, nil, expired
	}
	secured, info, err := credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: loaded.Authorities, ServerName: c.serverName,
		// With Certificates, the client sends none if the server names other CAs. The server should see it, and say why it refuses it.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &loaded.Certificate, nil },
	}).ClientHandshake(ctx, authority, raw)
	if err != nil || c.check == 0 {
		return secured, info, err
	}
	connection := &renewedConnection{Conn: secured, closed: make(chan struct{})}
	go connection.closeOnRenewal(c.reloader, loaded, c.check)
	return connection, info, nil
}

// expired is the error of a handshake with a certificate that has expired, nil for a valid one. `read` is why there is no newer one.
func (c *fileCredentials) expired(loaded *Loaded, read error) error {
	leaf := loaded.Certificate.Leaf
	if !time.Now().After(leaf.NotAfter) {
		return nil
	}
	err := fmt.Errorf("the own certificate %s has expired on %s: renew it (the file is read again by itself)", c.reloader.files.Certificate,
		leaf.NotAfter.UTC().Format(time.RFC3339))
	if read != nil {
		return fmt.Errorf("%w; the present files cannot be used: %w", err, read)
	}
	return err
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *fileCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("TLS: these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (c *fileCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (c *fileCredentials) Clone() credentials.TransportCredentials {
	clone := *c
	return &clone
}

// OverrideServerName implements credentials.TransportCredentials.
func (c *fileCredentials) OverrideServerName(name string) error {
	c.serverName = name
	return nil
}

// renewedConnection is a connection that is closed when the files of its handshake change.
type renewedConnection struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close implements net.Conn.
func (c *renewedConnection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *renewedConnection) closeOnRenewal(reloader *Reloader, used *Loaded, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for reloader.Current() == used {
		select {
		case <-c.closed:
			return
		case <-ticker.C:
		}
	}
	_ = c.Close() // gRPC sees the read fail, and connects again
}
