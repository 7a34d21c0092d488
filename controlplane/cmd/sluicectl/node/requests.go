package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
)

// makeKey makes a private key in a file, unless there is one. It never leaves this server.
func (s *System) makeKey(path string, of owner) (changed bool, err error) {
	if s.exists(path) {
		return false, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return false, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return false, err
	}
	return s.put(path, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})), of)
}

// certificateRequest returns a certificate signing request (PEM) with the key in a file.
func (s *System) certificateRequest(path, name string) (string, error) {
	text, err := s.read(path)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return "", fmt.Errorf("%s is not PEM: remove it and run the command again", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w: remove it and run the command again", path, err)
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw})), nil
}
