package certs_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/certs"
)

func read(t *testing.T, directory string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, "server.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func names(certificate *x509.Certificate) []string {
	all := slices.Clone(certificate.DNSNames)
	for _, ip := range certificate.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// A client that reaches the server by a name in the old certificate can do so with the new one.
func TestIssuingACertificateAgainKeepsItsSubjectNamesAndAddsTheNewOnes(t *testing.T) {
	directory := t.TempDir()
	authority, err := certs.OpenAuthority(directory)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(leaf certs.Leaf) error {
		leaf.File, leaf.CommonName, leaf.Role = "server", "controlplane", "server"
		return authority.Issue(leaf)
	}
	steps := []struct {
		leaf certs.Leaf
		want []string
	}{
		{certs.Leaf{Hosts: []string{"cp.example.org", "2001:db8::1"}}, []string{"cp.example.org", "2001:db8::1"}},
		{certs.Leaf{Hosts: []string{"localhost", "CP.example.org", "2001:db8:0::1", "192.0.2.1"}},
			[]string{"cp.example.org", "localhost", "2001:db8::1", "192.0.2.1"}},
		{certs.Leaf{}, []string{"cp.example.org", "localhost", "2001:db8::1", "192.0.2.1"}},
		{certs.Leaf{RemoveHosts: []string{"Localhost", "2001:db8:0:0::1"}}, []string{"cp.example.org", "192.0.2.1"}},
	}
	for i, step := range steps {
		if err := issue(step.leaf); err != nil {
			t.Fatal(err)
		}
		if got := names(read(t, directory)); !slices.Equal(got, step.want) {
			t.Errorf("step %d: the certificate has the names %v, want %v", i+1, got, step.want)
		}
	}
	for want, leaf := range map[string]certs.Leaf{
		"cannot be removed":       {RemoveHosts: []string{"elsewhere"}},
		"added and to be removed": {Hosts: []string{"x"}, RemoveHosts: []string{"X"}},
	} {
		if err := issue(leaf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", leaf, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(directory, "server.crt"), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := issue(certs.Leaf{Hosts: []string{"localhost"}}); err == nil || !strings.Contains(err.Error(), "would lose its names") {
		t.Errorf("a certificate that cannot be read is replaced: %v", err)
	}
}

func TestACertificateIsValidForItsLifetime(t *testing.T) {
	directory := t.TempDir()
	authority, err := certs.OpenAuthority(directory)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Truncate(time.Second)
	if err := authority.Issue(certs.Leaf{File: "server", Role: "server", Lifetime: 48 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	if end := read(t, directory).NotAfter; end.Before(before.Add(48*time.Hour)) || end.After(time.Now().Add(48*time.Hour)) {
		t.Errorf("it ends at %v", end)
	}
}
