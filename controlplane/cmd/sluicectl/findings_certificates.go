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
func (g *globals) certificateFindings(seen *controlPlane, now time.Time) []*pb.Finding {
	var found []*pb.Finding
	if g.insecure {
		return nil
	}
	for _, file := range []string{g.tls.CA, g.tls.Certificate} {
		for _, certificate := range readCertificates(file) {
			if seen.reports(certificate) {
				continue // once is enough
			}
			found = append(found, expiryFindings("file "+file, certificate, now)...)
		}
	}
	for i, certificate := range seen.certificates {
		if i == 0 && len(seen.control.GetCertificates()) == 0 { // the following ones belong to the authority, which is checked above
			found = append(found, expiryFindings("the control plane", certificate, now)...)
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

// expiryFindings returns a finding if a certificate ends soon. name is as in a reference to a certificate.
func expiryFindings(name string, certificate *x509.Certificate, now time.Time) []*pb.Finding {
	end := certificate.NotAfter
	left, day := end.Sub(now), end.UTC().Format(time.DateOnly)
	object := &pb.ObjectReference{Kind: "Certificate", Name: name}
	remedy := "issue another: `sluice-controlplane certs`, or where the system's certificates come from"
	switch {
	case left <= 0:
		return []*pb.Finding{localFinding("CertificateExpired", pb.FindingSeverity_FINDING_SEVERITY_CRITICAL, object, "has expired on "+day, remedy, end)}
	case left <= expiresSoon:
		return []*pb.Finding{localFinding("CertificateEndsSoon", pb.FindingSeverity_FINDING_SEVERITY_WARNING, object,
			fmt.Sprintf("expires in %d days, on %s", int(left.Hours()/24), day), remedy, end.Add(-expiresSoon))}
	}
	return nil
}

// reports reports whether the control plane lists this certificate itself.
func (w *controlPlane) reports(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(w.control.GetCertificates(), func(known *pb.CertificateExpiry) bool {
		return known.GetHolder() == certificate.Subject.CommonName && known.GetNotAfter().AsTime().Equal(certificate.NotAfter)
	})
}
