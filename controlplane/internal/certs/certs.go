// Package certs makes a certificate authority and certificates for a system that has none: for trials, and for small
// installations without cert-manager. A certificate's organization is `sluice:<role>`, and its common name is the name of its
// holder.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Lifetimes.
const (
	CALifetime   = 10 * 365 * 24 * time.Hour
	LeafLifetime = 365 * 24 * time.Hour
	// clockSkew is the difference of clocks that new certificates tolerate.
	clockSkew = 5 * time.Minute
)

// Names of the files in a directory of certificates.
const (
	CAFile    = "ca.crt"
	caKeyFile = "ca.key"
)

// Leaf describes a certificate.
type Leaf struct {
	// File is the name without `.crt` and `.key`.
	File string
	// CommonName is the name of the holder; for a gateway the name of its Gateway object.
	CommonName string
	// Role is `server`, or a client's role: admin, operator, gateway, read-only.
	Role string
	// Hosts are DNS names and IP addresses by which clients reach a server. Issue adds them to the names in a present
	// certificate of this file.
	Hosts []string
	// RemoveHosts are names and addresses of the present certificate that the new one must not have.
	RemoveHosts []string
	// Lifetime of the certificate; 0: LeafLifetime.
	Lifetime time.Duration
}

// ServerName is the common name of every server certificate of a control plane.
const ServerName = "sluice-controlplane"

// Authority signs certificates and stores all files in one directory.
type Authority struct {
	Signer
	directory string
}

// OpenAuthority reads the authority in a directory, or makes one if there is none.
func OpenAuthority(directory string) (*Authority, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	a := &Authority{directory: directory}
	text, err := os.ReadFile(filepath.Join(directory, CAFile))
	if errors.Is(err, fs.ErrNotExist) {
		return a, a.create()
	}
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(directory, caKeyFile))
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	return a, a.parse(text, key)
}

func (a *Authority) parse(text, key []byte) error {
	signer, err := ParseSigner(text, key)
	if err != nil {
		return fmt.Errorf("certificates: %s and %s in %s: %w", CAFile, caKeyFile, a.directory, err)
	}
	a.Signer = *signer
	return nil
}

func (a *Authority) create() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Sluice CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(CALifetime), MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	if a.certificate, err = x509.ParseCertificate(signed); err != nil {
		return err
	}
	a.key = key
	return a.write("ca", signed, key)
}

// Issue signs a certificate with a new key and writes both. It replaces the present certificate of that file and keeps its
// subject names, so a client that connects by a name loses its server only if Leaf.RemoveHosts has the name. Errors: a present
// certificate that cannot be read, because its names are unknown; a host in both Hosts and RemoveHosts; a host in RemoveHosts
// that the present certificate does not have.
func (a *Authority) Issue(leaf Leaf) error {
	names, err := a.subjectNames(leaf)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	signed, err := a.sign(leaf, names, &key.PublicKey)
	if err != nil {
		return err
	}
	return a.write(leaf.File, signed, key)
}

func (a *Authority) write(name string, signed []byte, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	files := []struct {
		name  string
		block *pem.Block
		mode  fs.FileMode
	}{
		{name + ".key", &pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}, 0o600},
		{name + ".crt", &pem.Block{Type: "CERTIFICATE", Bytes: signed}, 0o644},
	}
	for _, file := range files {
		path := filepath.Join(a.directory, file.name)
		// The file is written under another name and renamed, so that a server never reads a part of it.
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(file.block), file.mode); err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
	}
	return nil
}

func serial() *big.Int {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	raw[0] &= 0x7f           // RFC 5280 §4.1.2.2: positive
	return new(big.Int).SetBytes(raw[:])
}
