package endpoint

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// plugin answers a probe, and refuses to return its identity.
type plugin struct {
	csi.UnimplementedIdentityServer
}

func (plugin) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (plugin) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return nil, status.Error(codes.Unavailable, "not now")
}

// freeAddress returns an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func TestCallsAreCountedByMethodAndCodeAndServedUntilTheEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	registry, address, socket := prometheus.NewRegistry(), freeAddress(t), filepath.Join(t.TempDir(), "csi.sock")
	if err := ServeMetrics(ctx, address, registry); err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() {
		served <- Serve(ctx, socket, registry, func(server grpc.ServiceRegistrar) { csi.RegisterIdentityServer(server, plugin{}) })
	}()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	identity := csi.NewIdentityClient(connection)
	for range 3 {
		if _, err := identity.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := identity.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	text := fetch(t, address)
	for _, line := range []string{`sluice_csi_call_duration_seconds_count{code="OK",method="Probe"} 3`,
		`sluice_csi_call_duration_seconds_count{code="Unavailable",method="GetPluginInfo"} 1`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is not in:\n%s", line, text)
		}
	}
	_ = connection.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(time.Minute); ; { // the port becomes free again
		listener, err := net.Listen("tcp", address)
		if err == nil {
			_ = listener.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func fetch(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err)
	}
	return string(text)
}

func TestAnAddressOfMetricsThatIsTakenIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	err = ServeMetrics(t.Context(), listener.Addr().String(), prometheus.NewRegistry())
	if err == nil || !strings.Contains(err.Error(), "--metrics") || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("said: %v", err)
	}
}

func TestWithoutAnAddressNoMetricsAreServed(t *testing.T) {
	if err := ServeMetrics(t.Context(), "", prometheus.NewRegistry()); err != nil {
		t.Error(err)
	}
}
