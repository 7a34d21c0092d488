package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/controlplane/internal/model"
)

func TestWithoutAKeyFileAKeyIsMadeBesideTheEmbeddedEtcdOnly(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	s := &settings{dataDir: t.TempDir()}
	if _, err := s.keyring(log); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(filepath.Join(s.dataDir, "secrets.key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.keyring(log); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(s.dataDir, "secrets.key")); err != nil || !bytes.Equal(made, again) {
		t.Errorf("a second call generated another key: %v", err)
	}
	s.etcdEndpoints = []string{"https://192.0.2.1:2379"}
	if _, err := s.keyring(log); err == nil || !strings.Contains(err.Error(), "--key-file is missing") {
		t.Errorf("beside an external etcd: %v", err)
	}
}

func TestWithoutASystemIDTheDataDirectoryNamesTheSystemOrAnyIsAccepted(t *testing.T) {
	s := &settings{dataDir: t.TempDir(), cluster: "default"}
	if expected, err := s.expectedSystem(); err != nil || expected != "" {
		t.Errorf("without a note %q is expected (%v)", expected, err)
	}
	instance := model.NewUID()
	if err := writeSystemNote(s.dataDir, systemNote{"default", instance}); err != nil {
		t.Fatal(err)
	}
	if expected, err := s.expectedSystem(); err != nil || expected != instance {
		t.Errorf("with a note of %q %q is expected (%v)", instance, expected, err)
	}
}

// The port is in use, so an attempt to open it would fail.
func TestWithoutAnAddressOfMetricsNoPortIsOpened(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for address, fails := range map[string]bool{taken.Addr().String(): true, "": false} {
		closeMetrics, err := serveMetrics(address, prometheus.NewRegistry(), nil, slog.New(slog.DiscardHandler))
		if (err != nil) != fails {
			t.Errorf("--metrics %q: %v", address, err)
		}
		if err == nil {
			closeMetrics()
		}
	}
}

func TestTheDefaultNamesAreThoseOfTheFirstCertificateOnly(t *testing.T) {
	directory := t.TempDir()
	for _, c := range []struct {
		arguments []string
		want      []string
	}{
		{nil, []string{"localhost", "127.0.0.1", "::1"}},
		{[]string{"--remove-host", "localhost"}, []string{"127.0.0.1", "::1"}},
		{nil, []string{"127.0.0.1", "::1"}},
	} {
		command := certsCommand()
		command.SetOut(io.Discard)
		command.SetArgs(append([]string{"--directory", directory}, c.arguments...))
		if err := command.Execute(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(directory, "server.crt"))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		names := certificate.DNSNames
		for _, address := range certificate.IPAddresses {
			names = append(names, address.String())
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%q: the certificate names %q, not %q", c.arguments, names, c.want)
		}
	}
}
