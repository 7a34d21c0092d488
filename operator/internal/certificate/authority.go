// Package certificate makes the certificates of a system in Kubernetes, as Secrets: a CA, once, and the certificates that it
// signs. A certificate's organization is `sluice:<role>`, and its common name is the name of its holder.
package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Lifetime of the signed certificates; each is renewed when a third of it is left.
const Lifetime = 365 * 24 * time.Hour

// clockSkew is the difference of clocks that new certificates tolerate.
const clockSkew = 5 * time.Minute

// keyCA is the key of a Secret of the type kubernetes.io/tls with the CA of the peer's certificate.
const keyCA = "ca.crt"

// Leaf describes a certificate.
type Leaf struct {
	// CommonName is the name of the holder; for a gateway the name of its Gateway.
	CommonName string
	// Role is server, operator, csi, admin or gateway.
	Role string
	// Hosts are the DNS names of a server.
	Hosts []string
}

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// trust is the CA that peers trust, chain the certificates that they send after their own, both in PEM.
	trust, chain []byte
}

// Make returns a self-signed CA, as a Secret's data.
func Make() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	made, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "Sluice CA", NotBefore: time.Now().Add(-clockSkew)}, key)
	if err != nil {
		return nil, err
	}
	return pair(encode(made.Raw), key, encode(made.Raw))
}

// Read reads a CA from a Secret's data, as Make or cert-manager write it.
func Read(data map[string][]byte) (*Authority, error) {
	certificates, err := cert.ParseCertsPEM(data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", corev1.TLSCertKey, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", corev1.TLSPrivateKeyKey, err)
	}
	key, signs := parsed.(crypto.Signer)
	if !signs || !certificates[0].IsCA {
		return nil, errors.New("it is no authority's: its certificate is not one that signs others")
	}
	a := &Authority{certificate: certificates[0], key: key, trust: data[keyCA]}
	if a.certificate.CheckSignatureFrom(a.certificate) == nil {
		a.trust = encode(a.certificate.Raw)
	} else {
		a.chain = data[corev1.TLSCertKey]
	}
	if len(a.trust) == 0 {
		return nil, fmt.Errorf("%s is missing: the authority was signed by another one, which ends have to trust", keyCA)
	}
	return a, nil
}

// Issue signs a certificate with a new key, and returns both as a Secret's data.
func (a *Authority) Issue(leaf Leaf, now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	usage := x509.ExtKeyUsageClientAuth
	if leaf.Role == "server" {
		usage = x509.ExtKeyUsageServerAuth
	}
	template := &x509.Certificate{
		SerialNumber: serial(), NotBefore: now.Add(-clockSkew), NotAfter: now.Add(Lifetime),
		Subject:  pkix.Name{CommonName: leaf.CommonName, Organization: []string{organization(leaf)}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, DNSNames: leaf.Hosts,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return pair(append(encode(raw), a.chain...), key, a.trust)
}

// Due reports whether a Secret's data is not this leaf's certificate by this CA, or expires soon.
func (a *Authority) Due(data map[string][]byte, leaf Leaf, now time.Time) bool {
	certificates, err := cert.ParseCertsPEM(data[corev1.TLSCertKey])
	if err != nil {
		return true
	}
	has := certificates[0]
	return now.Add(Lifetime/3).After(has.NotAfter) || has.CheckSignatureFrom(a.certificate) != nil ||
		string(data[keyCA]) != string(a.trust) || has.Subject.CommonName != leaf.CommonName ||
		!slices.Equal(has.Subject.Organization, []string{organization(leaf)}) || !slices.Equal(has.DNSNames, leaf.Hosts)
}

func organization(leaf Leaf) string { return "sluice:" + leaf.Role }

func encode(raw []byte) []byte {
	text, err := cert.EncodeCertificates(&x509.Certificate{Raw: raw})
	if err != nil {
		panic(err) // it writes to memory
	}
	return text
}

func pair(certificates []byte, key *ecdsa.PrivateKey, trust []byte) (map[string][]byte, error) {
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	return map[string][]byte{corev1.TLSCertKey: certificates, corev1.TLSPrivateKeyKey: text, keyCA: trust}, err
}

func serial() *big.Int {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	raw[0] &= 0x7f           // RFC 5280 §4.1.2.2: positive
	return new(big.Int).SetBytes(raw[:])
}
