package csi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

func metrics(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBothPluginsTellPrometheusOfTheirCallsAndTheNodesOfWhatIsStaged(t *testing.T) {
	_, err := env.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{})
	refused(t, err, codes.InvalidArgument, "volume id")
	_, err = env.node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{})
	refused(t, err, codes.InvalidArgument, "volume id")
	for address, words := range map[string][]string{
		env.controllerMetrics: {`sluice_csi_call_duration_seconds_count{code="InvalidArgument",method="DeleteVolume"}`, "process_start_time_seconds"},
		env.nodeMetrics: {`sluice_csi_call_duration_seconds_count{code="InvalidArgument",method="NodeUnstageVolume"}`,
			"sluice_csi_staged_volumes 0", `sluice_csi_sessions{state="lacking"} 0`, `sluice_csi_paths{state="live"} 0`},
	} {
		text := metrics(t, address)
		for _, metric := range words {
			if !strings.Contains(text, "\n"+metric) {
				t.Errorf("%s tells nothing of %s:\n%s", address, metric, text)
			}
		}
	}
}
