package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unpack returns the files of an archive.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	archive := tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "sluice-dump/")] = string(text)
	}
}

func TestADumpHoldsEverythingButSecrets(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "sluice_up 1\n")
	}))
	defer metrics.Close()
	name := filepath.Join(t.TempDir(), "dump.tar.gz")
	l.must("dump", "--output", name, "--metrics", metrics.URL+"/metrics", "--metrics", metrics.URL+"/none")
	files := unpack(t, name)
	for file, word := range map[string]string{"versions.yaml": "9.8.7", "objects/volume.yaml": "name: orders",
		"objects/host.yaml": "passwordSet: true", "objects/session.yaml": "gw-1.2.00023d000001", "events.yaml": "kind: List",
		"status.txt": "Gateways", "doctor.txt": "remedy:", "metrics-1.txt": "sluice_up 1", "problems.txt": "metrics-2.txt: answers 404"} {
		if !strings.Contains(files[file], word) {
			t.Errorf("%s lacks %q:\n%s", file, word, files[file])
		}
	}
	for file, text := range files {
		if strings.Contains(text, "open-sesame-123") {
			t.Errorf("the secret is in %s", file)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
