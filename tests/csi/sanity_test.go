package csi_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

// The node service needs a kernel with iscsi_tcp: its part of the suite runs in the guest (node.guest).
func TestTheControllerPassesCSISanity(t *testing.T) {
	if err := flag.Set("ginkgo.skip", "Node Service"); err != nil {
		t.Fatal(err)
	}
	config := sanity.NewTestConfig()
	config.Address, config.ControllerAddress = "unix:"+env.nodeSocket, "unix:"+env.controllerSocket
	config.TargetPath, config.StagingPath = filepath.Join(t.TempDir(), "target"), filepath.Join(t.TempDir(), "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 64<<20, 128<<20
	config.TestVolumeParameters = map[string]string{"pool": "pool"}
	config.TestVolumeMutableParameters = map[string]string{"iops": "1000", "bytesPerSecond": "10485760"}
	sanity.Test(t, config)
}
