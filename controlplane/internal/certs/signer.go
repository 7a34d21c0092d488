package certs

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Signer is a certificate authority with its private key.
type Signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// ParseSigner reads the certificate and the private key of an authority (PEM). Errors name what is wrong with which of them.
func ParseSigner(certificate, key []byte) (*Signer, error) {
	parsed, err := ParseAuthority(certificate)
	if err != nil {
		return nil, err
	}
	private, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	public, ok := private.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(parsed.PublicKey) {
		return nil, errors.New("the private key is that of another certificate")
	}
	return &Signer{parsed, private}, nil
}

// ParseAuthority reads the certificate of an authority (PEM).
func ParseAuthority(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the certificate is not PEM")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate: %w", err)
	}
	if !parsed.IsCA {
		return nil, fmt.Errorf("the certificate of %q is not that of an authority", parsed.Subject.CommonName)
	}
	return parsed, nil
}

func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the private key is not PEM")
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key is neither SEC 1 (EC), PKCS #1 (RSA) nor unencrypted PKCS #8")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key cannot sign")
	}
	return signer, nil
}

// Raw returns the authority's certificate (DER).
func (s *Signer) Raw() []byte { return s.certificate.Raw }

// Fingerprint returns the SHA-256 of the authority's certificate (DER), in hexadecimal digits.
func (s *Signer) Fingerprint() string { return fingerprint(s.certificate.Raw) }

// PEM returns the authority's certificate.
func (s *Signer) PEM() string { return pemOf(s.certificate.Raw) }

func pemOf(certificate []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// Request is a verified certificate signing request. Only its public key is used: the signer decides on subject and names.
type Request struct {
	public any
	raw    []byte
}

// Fingerprint returns the SHA-256 of the public key (RFC 5280 §4.1.2.7, DER), in hexadecimal digits.
func (r Request) Fingerprint() string { return fingerprint(r.raw) }

// KeyFingerprint returns the SHA-256 of the public key of a certificate, as Request.Fingerprint does.
func KeyFingerprint(certificate *x509.Certificate) string {
	return fingerprint(certificate.RawSubjectPublicKeyInfo)
}

// SignedAt returns when a Signer signed a certificate, to the second.
func SignedAt(certificate *x509.Certificate) time.Time { return certificate.NotBefore.Add(clockSkew) }

func fingerprint(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ParseRequest reads a certificate signing request (PEM, RFC 2986), and verifies that its sender has the private key.
func ParseRequest(text string) (Request, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return Request{}, errors.New("it is not PEM (`CERTIFICATE REQUEST`)")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = parsed.CheckSignature()
	}
	if err != nil {
		return Request{}, fmt.Errorf("it is no certificate signing request: %w", err)
	}
	return Request{parsed.PublicKey, parsed.RawSubjectPublicKeyInfo}, nil
}

// Sign signs a certificate (PEM) for the public key of a request. The leaf's File and RemoveHosts are not used.
func (s *Signer) Sign(leaf Leaf, request Request) (string, error) {
	var names subjectNames
	for _, host := range leaf.Hosts {
		names.add(host)
	}
	signed, err := s.sign(leaf, names, request.public)
	if err != nil {
		return "", err
	}
	return pemOf(signed), nil
}

func (s *Signer) sign(leaf Leaf, names subjectNames, public any) ([]byte, error) {
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), NotBefore: now.Add(-clockSkew), NotAfter: now.Add(cmp.Or(leaf.Lifetime, LeafLifetime)),
		Subject:  pkix.Name{CommonName: leaf.CommonName, Organization: []string{"sluice:" + leaf.Role}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames: names.dns, IPAddresses: names.ip, URIs: names.uri, EmailAddresses: names.mail,
	}
	if leaf.Role == "server" {
		// A server is a client of the other members of the embedded etcd.
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return x509.CreateCertificate(rand.Reader, template, s.certificate, public, s.key)
}
