package node_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func random(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.Read(data)
	return data
}

// write writes data at the beginning of a file or device, and syncs it.
func write(t *testing.T, path string, data []byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = file.Write(data); err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
}

// holds checks the beginning of a file or device, read from the disk and not from the cache.
func holds(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	found := make([]byte, len(data))
	if _, err := file.Read(found); err != nil || !bytes.Equal(found, data) {
		t.Errorf("%s holds something else than was written (%v)", path, err)
	}
}

func TestAFileSystemIsMadeOnceGrownInUseAndTakenBackWhole(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			v, data := newVolume(t, fileSystem(kind), 320), random(3*mebibyte)
			v.attach()
			v.mount()
			if have := len(sessions(t)); have != portals {
				t.Errorf("%d sessions, and the target has %d portals", have, portals)
			}
			write(t, filepath.Join(v.target, "file"), data)
			before := v.bytes()
			v.grow(448)
			if after := v.bytes(); after < before+100*mebibyte {
				t.Errorf("the file system had %d bytes and has %d", before, after)
			}
			holds(t, filepath.Join(v.target, "file"), data)
			v.unmount()
			nothingLeft(t)
			v.mount()
			holds(t, filepath.Join(v.target, "file"), data)
			v.unmount()
		})
	}
}

func TestARawBlockVolumeIsItsDeviceAndGrowsInUse(t *testing.T) {
	v, data := newVolume(t, rawBlock(), 64), random(2*mebibyte)
	v.attach()
	v.mount()
	write(t, v.target, data)
	v.grow(128)
	if have := v.bytes(); have != 128*mebibyte {
		t.Errorf("the device has %d bytes", have)
	}
	holds(t, v.target, data)
	v.unmount()
	nothingLeft(t)
	v.mount()
	holds(t, v.target, data)
}

func TestAVolumeWorksAndOthersAreStagedWhileAFabricIsDown(t *testing.T) {
	first, data := newVolume(t, fileSystem("ext4"), 64), random(mebibyte)
	first.attach()
	first.mount()
	say(t, "ip link set eth1 down")
	t.Cleanup(func() { say(t, "ip link set eth1 up") })
	write(t, filepath.Join(first.target, "file"), data)
	holds(t, filepath.Join(first.target, "file"), data)
	second := newVolume(t, fileSystem("xfs"), 320)
	second.attach()
	second.mount()
	write(t, filepath.Join(second.target, "file"), data)
	holds(t, filepath.Join(second.target, "file"), data)
	second.unmount()
	first.unmount()
	nothingLeft(t)
}

func TestAVolumeGetsThePathsOfAFabricThatWasDownWhenItWasStaged(t *testing.T) {
	v, data := newVolume(t, fileSystem("ext4"), 64), random(mebibyte)
	v.attach()
	say(t, "ip link set eth1 down")
	t.Cleanup(func() { say(t, "ip link set eth1 up") })
	v.mount()
	write(t, filepath.Join(v.target, "file"), data)
	if have := len(sessions(t)); have != portals/2 {
		t.Errorf("%d sessions with a fabric down", have)
	}
	say(t, "ip link set eth1 up")
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	for have := 0; have != portals; {
		if have = len(glob(t, "/sys/block/dm-*/slaves/sd*")); ctx.Err() != nil {
			t.Fatalf("%d paths of %d", have, portals)
		}
		time.Sleep(comeAgain)
	}
	say(t, "ip link set eth0 down") // only the paths that were added later remain
	t.Cleanup(func() { say(t, "ip link set eth0 up") })
	holds(t, filepath.Join(v.target, "file"), data)
	say(t, "ip link set eth0 up")
	v.unmount()
	nothingLeft(t)
}

func TestADeviceThatIsNotTheVolumeIsRefusedAndLeftAlone(t *testing.T) {
	v := newVolume(t, fileSystem("ext4"), 64)
	v.attach()
	right := v.context["naa"]
	v.context["naa"] = "3000000000000001"
	if err := v.tryStage(); status.Code(err) != codes.Unavailable {
		t.Errorf("staged with another volume's identity: %v", err)
	}
	if left := maps(t); len(left) > 0 {
		t.Errorf("maps are left: %v", left)
	}
	v.unstage()
	nothingLeft(t)
	v.context["naa"] = right
	v.mount()
}

func TestDataThatIsNoFileSystemIsNotFormattedAway(t *testing.T) {
	v, data := newVolume(t, rawBlock(), 64), random(mebibyte)
	v.attach()
	v.mount()
	write(t, v.target, data)
	v.unmount()
	v.capability = fileSystem("ext4")
	if err := v.tryStage(); err == nil {
		t.Error("it was formatted")
	}
	v.unstage()
	v.capability = rawBlock()
	v.mount()
	holds(t, v.target, data)
}

func TestAPluginThatWasKilledTakesBackWhatItStaged(t *testing.T) {
	v, data := newVolume(t, fileSystem("ext4"), 64), random(mebibyte)
	v.attach()
	v.mount()
	write(t, filepath.Join(v.target, "file"), data)
	stop(env.process)
	startNode()
	holds(t, filepath.Join(v.target, "file"), data)
	v.unmount()
	nothingLeft(t)
}

func TestAVolumeThatWasTakenAwayIsStillUnstagedWhole(t *testing.T) {
	v := newVolume(t, fileSystem("ext4"), 64)
	v.attach()
	v.mount()
	write(t, filepath.Join(v.target, "file"), random(mebibyte))
	v.detach() // as if the node were abandoned: the LUN disappears under the mount
	v.unmount()
	nothingLeft(t)
}

func TestAVolumeWhoseDisksAreGoneIsStillUnstagedWhole(t *testing.T) {
	v := newVolume(t, fileSystem("xfs"), 320)
	v.attach()
	v.mount()
	for _, file := range glob(t, "/sys/block/sd*/device/delete") {
		if err := os.WriteFile(file, []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	v.unmount()
	nothingLeft(t)
	v.mount()
}

func TestVolumesOfATargetShareItsSessionsUntilTheLastGoes(t *testing.T) {
	first, second, data := newVolume(t, fileSystem("ext4"), 64), newVolume(t, rawBlock(), 64), random(mebibyte)
	first.attach()
	second.attach()
	if first.context["iqn"] != second.context["iqn"] {
		t.Fatalf("two targets: %v, %v", first.context, second.context)
	}
	first.mount()
	if have := len(glob(t, "/sys/block/sd*")); have != portals {
		t.Errorf("%d disks though one volume of %d paths is staged", have, portals)
	}
	second.mount()
	if have := len(sessions(t)); have != portals {
		t.Errorf("%d sessions", have)
	}
	first.unmount()
	write(t, second.target, data)
	holds(t, second.target, data)
	if have := len(glob(t, "/sys/block/sd*")); have != portals {
		t.Errorf("%d disks are left of one volume's %d", have, portals)
	}
	second.unmount()
	nothingLeft(t)
}

func TestTheNodePassesCSISanity(t *testing.T) {
	if err := flag.Set("ginkgo.focus", "Node Service"); err != nil {
		t.Fatal(err)
	}
	_ = flag.Set("ginkgo.no-color", "true")
	config := sanity.NewTestConfig()
	config.Address, config.ControllerAddress = "unix:"+sockets+"/node.sock", "unix:"+sockets+"/controller.sock"
	config.DialOptions = append(config.DialOptions, grpc.WithUnaryInterceptor(comesAgain))
	config.TargetPath, config.StagingPath = kubelet+"/sanity-target", kubelet+"/sanity-staging"
	config.TestVolumeSize, config.TestVolumeExpandSize = 64*mebibyte, 128*mebibyte
	config.TestVolumeParameters = map[string]string{"topology": "any"}
	config.TestNodeVolumeAttachLimit = false
	sanity.Test(t, config)
	nothingLeft(t)
}
