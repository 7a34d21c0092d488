package node

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Renew renews the certificates of this server before they end. Their private keys stay.
type Renew struct {
	System *System
	// Certificates is the directory of the administrator's certificate, and on the first node of the copies of the others.
	Certificates string
	// All: also certificates that are valid for long.
	All bool
	Now func() time.Time
	// Sign returns a certificate (PEM) for a certificate signing request (PEM). The control plane signs it for the identity of the
	// access's certificate.
	Sign func(ctx context.Context, access Access, request string) (certificate string, err error)
}

// renewedPart is the part of its life at whose begin a certificate is renewed: the last third. So there are months for repetitions.
const renewedPart = 3

// errNotSetUp: a command needs the plan of this server.
var errNotSetUp = errors.New("this server was not set up by `sluicectl node init` or `sluicectl node join`: " + RecordFile +
	" is missing or not complete")

// held is a certificate with its key: FILE.crt and FILE.key.
type held struct {
	file string
	of   owner
}

// Run renews what is due. The programs read the new files by themselves. changed: a certificate was renewed.
func (r *Renew) Run(ctx context.Context, to io.Writer) (changed bool, err error) {
	plan, err := r.System.readRecord()
	if err != nil {
		return false, err
	}
	if plan == nil {
		return false, errNotSetUp
	}
	var all []held
	for _, one := range plan.gateways() {
		all = append(all, held{filepath.Join(tlsDirectory, "gateway-"+one.name), ownerService})
	}
	if plan.Member {
		all = append(all, held{filepath.Join(tlsDirectory, "server"), ownerService})
	}
	if admin := filepath.Join(r.Certificates, adminFile); r.System.exists(admin + ".crt") {
		all = append(all, held{admin, ownerAdministrator})
	}
	var steps []step
	for _, one := range all {
		steps = append(steps, step{what: "renew " + one.file + ".crt", run: func(ctx context.Context) (bool, error) { return r.renew(ctx, plan, one) }})
	}
	return runSteps(ctx, to, steps)
}

func (r *Renew) renew(ctx context.Context, plan *Plan, of held) (changed bool, err error) {
	present, err := r.System.certificate(of.file + ".crt")
	if err != nil {
		return false, err
	}
	if left := present.NotAfter.Sub(r.Now()); !r.All && left > present.NotAfter.Sub(present.NotBefore)/renewedPart {
		return false, nil
	}
	request, err := r.System.certificateRequest(of.file+".key", present.Subject.CommonName)
	if err != nil {
		return false, err
	}
	signed, err := r.sign(ctx, plan, of, request)
	if err != nil {
		return false, err
	}
	if _, err := r.System.put(of.file+".crt", signed, of.of); err != nil {
		return false, err
	}
	// A later `node init` compares with these copies.
	if copied := filepath.Join(r.Certificates, filepath.Base(of.file)+".crt"); copied != of.file+".crt" && r.System.exists(copied) {
		_, err = r.System.put(copied, signed, ownerAdministrator)
	}
	return true, err
}

// sign asks one control plane after the other.
func (r *Renew) sign(ctx context.Context, plan *Plan, of held, request string) (string, error) {
	var failures []error
	for _, server := range plan.endpoints() {
		access := Access{Server: server, CA: r.System.path(filepath.Join(tlsDirectory, caFile)), Certificate: r.System.path(of.file + ".crt"),
			Key: r.System.path(of.file + ".key")}
		signed, err := r.Sign(ctx, access, request)
		if err == nil {
			return signed, nil
		}
		failures = append(failures, err)
	}
	return "", errors.Join(failures...)
}

// certificate reads a certificate (PEM).
func (s *System) certificate(path string) (*x509.Certificate, error) {
	text, err := s.read(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, fmt.Errorf("%s is missing or not PEM: join again, or make it with `sluice-controlplane certs`", path)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return parsed, nil
}
