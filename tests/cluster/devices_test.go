package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

// loopDevices attaches a loop device of each size in MiB, until the test ends.
func loopDevices(t *testing.T, mebibytes ...int64) []string {
	t.Helper()
	var devices []string
	for i, size := range mebibytes {
		file := filepath.Join(t.TempDir(), "disk-"+strconv.Itoa(i))
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, size<<20); err != nil {
			t.Fatal(err)
		}
		output, err := exec.Command("losetup", "--find", "--show", file).CombinedOutput()
		if err != nil {
			t.Skipf("no loop devices here: %v: %s", err, output)
		}
		device := strings.TrimSpace(string(output))
		t.Cleanup(func() {
			if output, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
				t.Errorf("losetup --detach %s: %v: %s", device, err, output)
			}
		})
		devices = append(devices, device)
	}
	return devices
}

// A volume on a whole device: its owner is killed, the other gateway of the node takes the device, and the first one returns
// while the control plane is stopped. The written data is there each time.
func TestAVolumeOnAWholeDeviceOutlivesItsOwnersAndTheControlPlanesAbsence(t *testing.T) {
	devices := loopDevices(t, 64, 24)
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1, Devices: devices})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	writes(ctx, t, login(ctx, t, c, 1, owner), 0, 'a')
	if err := c.Gateways[owner].Kill(); err != nil {
		t.Fatal(err)
	}
	other := 1 - owner
	session := login(ctx, t, c, 2, other)
	if found := reads(ctx, t, session, 0); found != 'a' {
		t.Errorf("after its owner was killed it holds %q", found)
	}
	writes(ctx, t, session, 0, 'b')
	if err := c.Replicas[0].Kill(); err != nil {
		t.Fatal(err)
	}
	// It is not killed: its state is on its disk one second after a change, or when it ends.
	if err := c.Gateways[other].Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := c.Gateways[other].Start(); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() (err error) {
		session, err = c.Login(ctx, 3, other)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	if found := reads(ctx, t, session, 0); found != 'b' {
		t.Errorf("without a control plane it holds %q", found)
	}
	if err := c.Replicas[0].Start(); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error {
		_, err := c.Control(ctx, "status")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	held := func(device string) string {
		t.Helper()
		all, err := os.ReadFile(device)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Trim(string(all), "\x00")
	}
	if held(devices[1]) == "" || held(devices[0]) != "" {
		t.Error("it is not on the smallest device that is large enough")
	}
	for _, words := range []string{"target delete cluster --yes --wait", "volume delete " + cluster.VolumeName(0) + " --wait"} {
		if _, err := c.Control(ctx, strings.Fields(words)...); err != nil {
			t.Fatalf("sluicectl %s: %v", words, err)
		}
	}
	if left := held(devices[1]); left != "" {
		t.Errorf("after it was deleted %d bytes of it are left", len(left))
	}
}
