package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates of tests.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	template := a.template(time.Hour)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) template(lifetime time.Duration) *x509.Certificate {
	a.serial++
	return &x509.Certificate{SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(lifetime)}
}

// issue writes the authority's certificate and a new certificate with its key into the files. `address` is the server's, empty for a
// client's.
func (a *authority) issue(files Files, address string, lifetime time.Duration) {
	a.t.Helper()
	key, template := newKey(a.t), a.template(lifetime)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if address != "" {
		template.ExtKeyUsage, template.IPAddresses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []net.IP{net.ParseIP(address)}
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	write(a.t, files.CA, "CERTIFICATE", a.certificate.Raw)
	write(a.t, files.Certificate, "CERTIFICATE", signed)
	write(a.t, files.Key, "EC PRIVATE KEY", raw)
}

func write(t *testing.T, path, kind string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// filesIn names the files of one end in a folder.
func filesIn(folder, end string) Files {
	return Files{CA: filepath.Join(folder, end+"-ca.crt"), Certificate: filepath.Join(folder, end+".crt"),
		Key: filepath.Join(folder, end+".key")}
}
