package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"time"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// expiresSoon is the remaining lifetime of a certificate from which on it is a finding.
const expiresSoon = 30 * 24 * time.Hour

// certificateFindings checks the caller's own certificates and those of the control plane's connection.
func (g *globals) certificateFindings(seen *clusterObjects, now time.Time) []finding {
	var found []finding
	if g.insecure {
		return nil
	}
	for _, file := range []string{g.tls.CA, g.tls.Certificate} {
		for _, certificate := range readCertificates(file) {
			if seen.reports(certificate) {
				continue // once is enough
			}
			found = append(found, expiryFindings("certificate "+file, certificate, now)...)
		}
	}
	for i, certificate := range seen.certificates {
		if i == 0 && len(seen.control.GetCertificates()) == 0 { // the following ones belong to the authority, which is checked above
			found = append(found, expiryFindings("control plane's certificate", certificate, now)...)
		}
	}
	return found
}

// readCertificates skips files that cannot be read, because the connection was made with them.
func readCertificates(file string) []*x509.Certificate {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, certificate)
		}
	}
}

func expiryFindings(name string, certificate *x509.Certificate, now time.Time) []finding {
	return endFindings(name, certificate.NotAfter, now)
}

// reports reports whether the control plane lists this certificate itself.
func (w *clusterObjects) reports(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(w.control.GetCertificates(), func(known *pb.CertificateExpiry) bool {
		return known.GetHolder() == certificate.Subject.CommonName && known.GetNotAfter().AsTime().Equal(certificate.NotAfter)
	})
}

// certificateAlarms returns findings for the certificates that the control plane lists: its own and its callers'.
func (w *clusterObjects) certificateAlarms() []finding {
	var found []finding
	for _, certificate := range w.control.GetCertificates() {
		name := "certificate of " + certificate.GetRole() + " " + certificate.GetHolder()
		found = append(found, endFindings(name, certificate.GetNotAfter().AsTime(), w.control.GetTime().AsTime())...)
	}
	return found
}

func endFindings(name string, end, now time.Time) []finding {
	left := end.Sub(now)
	if left > expiresSoon {
		return nil
	}
	problem := fmt.Sprintf("expires in %d days, on %s", int(left.Hours()/24), end.UTC().Format(time.DateOnly))
	if left <= 0 {
		problem = "has expired on " + end.UTC().Format(time.DateOnly)
	}
	return []finding{{name, problem, "issue another: `sluice-controlplane certs`, or where the system's certificates come from"}}
}
