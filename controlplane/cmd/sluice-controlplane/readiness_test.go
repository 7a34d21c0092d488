package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A member that receives its data serves no API yet, and its probe is asked meanwhile.
func TestReadyzIsFalseUntilTheStoreIsOpen(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	ready := &readiness{}
	closeMetrics, err := serveMetrics(address, prometheus.NewRegistry(), ready, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer closeMetrics()
	ask := func() (int, string) {
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	if code, text := ask(); code != http.StatusServiceUnavailable || !strings.Contains(text, "it is not open yet") {
		t.Errorf("before: %d %s", code, text)
	}
	embedded, err := (&settings{dataDir: t.TempDir()}).startEmbedded(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	ready.client.Store(embedded.Client)
	if code, text := ask(); code != http.StatusOK {
		t.Errorf("afterwards: %d %s", code, text)
	}
}
