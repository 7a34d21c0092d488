package csi_test

import (
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"sluice.dev/sluice/tests/csi/plugin"
	"sluice.dev/sluice/tests/netns"
)

// During an upgrade the driver presents the certificate of the earlier release, which has the operator's role.
func TestADriverThatStillHasACertificateOfTheOperatorsRoleKeepsWorking(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "earlier.sock")
	programs, err := filepath.Abs("../../build/bin")
	if err != nil {
		t.Fatal(err)
	}
	earlier := &netns.Process{Name: "csi-earlier", Log: filepath.Join(t.TempDir(), "log"),
		Arguments: append([]string{filepath.Join(programs, "sluice-csi"), "--mode", "controller", "--endpoint", "unix://" + socket},
			plugin.ControllerFlags(env.Cluster, "operator")...)}
	if err := earlier.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := earlier.Kill(); err != nil {
			t.Error(err)
		}
	})
	connection, err := plugin.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	controller := csi.NewControllerClient(connection)
	made, err := controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "earlier",
		CapacityRange: &csi.CapacityRange{RequiredBytes: 16 << 20}, VolumeCapabilities: []*csi.VolumeCapability{alone}})
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetVolume().GetVolumeId()
	if _, err := controller.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: nodeID("node-23"),
		VolumeCapability: alone}); err != nil {
		t.Error(err)
	}
	// The newer driver, with a certificate of its own role, continues with the same objects.
	unpublish(t, id, nodeID("node-23"))
	if _, err := env.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		t.Error(err)
	}
}
