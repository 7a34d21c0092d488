package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
)

// Parts of the text of a token.
const (
	joinTokenForm      = "sluice1"
	joinTokenIDSize    = 5  // bytes: 8 characters
	joinTokenBytes     = 20 // of the secret: 32 characters
	joinTokenPartCount = 4
)

var joinTokenEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// JoinToken admits new servers to a system.
type JoinToken struct {
	// ID is public, Secret is not.
	ID, Secret string
	// Authority is the SHA-256 of the certificate (DER) of the system's authority.
	Authority [sha256.Size]byte
}

// NewJoinToken makes a random token of an authority, given by its certificate (DER).
func NewJoinToken(authority []byte) JoinToken {
	var id [joinTokenIDSize]byte
	var secret [joinTokenBytes]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	_, _ = rand.Read(secret[:])
	return JoinToken{ID: joinTokenEncoding.EncodeToString(id[:]), Secret: joinTokenEncoding.EncodeToString(secret[:]),
		Authority: sha256.Sum256(authority)}
}

// ParseJoinToken reads the text of a token. The error does not contain it.
func ParseJoinToken(text string) (JoinToken, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != joinTokenPartCount || parts[0] != joinTokenForm {
		return JoinToken{}, fmt.Errorf("the token is not of the form %s.ID.SECRET.HASH: copy it as a whole", joinTokenForm)
	}
	token := JoinToken{ID: parts[1], Secret: parts[2]}
	for _, part := range []struct {
		name, text string
		size       int
	}{{"ID", token.ID, joinTokenIDSize}, {"SECRET", token.Secret, joinTokenBytes}} {
		if raw, err := joinTokenEncoding.DecodeString(part.text); err != nil || len(raw) != part.size {
			return JoinToken{}, fmt.Errorf("the part %s of the token is damaged: copy the token as a whole", part.name)
		}
	}
	hash, err := hex.DecodeString(parts[3])
	if err != nil || len(hash) != len(token.Authority) {
		return JoinToken{}, errors.New("the part HASH of the token is damaged: copy the token as a whole")
	}
	copy(token.Authority[:], hash)
	return token, nil
}

// Text returns the text that ParseJoinToken reads. It contains the secret.
func (t JoinToken) Text() string {
	return strings.Join([]string{joinTokenForm, t.ID, t.Secret, hex.EncodeToString(t.Authority[:])}, ".")
}

// Credentials returns the client's half of TLS (TLS 1.3) with a join listener. It has no client certificate. The handshake fails unless the
// server sends the certificate of the token's authority, and one of its own that this authority signed for the dialled host. So the
// secret is sent to no other server.
func (t JoinToken) Credentials() credentials.TransportCredentials {
	return &joinCredentials{authority: t.Authority}
}

type joinCredentials struct {
	authority  [sha256.Size]byte
	serverName string
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *joinCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	name := c.serverName
	if name == "" {
		name = authority
	}
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: name,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies: the authority is known by its hash only
		VerifyConnection:   func(state tls.ConnectionState) error { return c.verify(state.PeerCertificates, name) },
	}).ClientHandshake(ctx, authority, raw)
}

func (c *joinCredentials) verify(sent []*x509.Certificate, host string) error {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	found := false
	for _, certificate := range sent[1:] {
		if sha256.Sum256(certificate.Raw) == c.authority {
			roots.AddCert(certificate)
			found = true
		} else {
			intermediates.AddCert(certificate)
		}
	}
	if !found {
		return errors.New("the server does not show the authority of the token: the token is of another system, or the address is that of " +
			"another server. Make a token at the system that this server is to join")
	}
	_, err := sent[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: intermediates,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *joinCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("TLS: these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (c *joinCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (c *joinCredentials) Clone() credentials.TransportCredentials {
	clone := *c
	return &clone
}

// OverrideServerName implements credentials.TransportCredentials.
func (c *joinCredentials) OverrideServerName(name string) error {
	c.serverName = name
	return nil
}
