// Package capacity_test shows what the CSI driver tells the scheduler about free space: of a node whose disk is full, and of an empty
// one. The cluster has a gateway on each node.
package capacity_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/csi/plugin"
	"sluice.dev/sluice/tests/netns"
)

const (
	patience = 60 * time.Second
	// size of the volumes: a full pool has no room for one.
	size = 32 << 20
	// selector is the class's: both pools have this label.
	selector = "disk=own"
)

func TestMain(m *testing.M) {
	if err := netns.Isolate(); err != nil {
		fmt.Println("SKIP csi capacity:", err)
		return
	}
	os.Exit(m.Run())
}

// started is a cluster of two nodes with a controller plugin.
type started struct {
	*cluster.Cluster
	controller csi.ControllerClient
}

func start(t *testing.T) *started {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	scratch := t.TempDir()
	programs, err := filepath.Abs("../../../build/bin")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Start(ctx, cluster.Options{Programs: programs, Directory: scratch, Gateways: 2, Replicas: 1, Volumes: 1,
		Node: func(gateway int) string { return fmt.Sprintf("node-%d", gateway+1) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	key := []byte(strings.Repeat("k", 43) + "=\n")
	if err := errors.Join(c.WaitReady(ctx), os.WriteFile(filepath.Join(scratch, "chap.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	process := plugin.Process(scratch, programs, "controller", plugin.ControllerFlags(c, "csi")...)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Kill() })
	connection, err := plugin.Dial(ctx, filepath.Join(scratch, "controller.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return &started{c, csi.NewControllerClient(connection)}
}

// small mounts a small file system. Gateways see it if they start later.
func small(t *testing.T) *netns.FileSystem {
	t.Helper()
	disk, err := netns.Small("ext4", t.TempDir())
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := disk.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// localPool makes a pool of the class on a file system.
func (s *started) localPool(t *testing.T, name, node string, disk *netns.FileSystem) {
	t.Helper()
	if _, err := s.Control(t.Context(), "pool", "create", name, "--node", node, "--directory", disk.Directory, "--label", selector,
		"--wait"); err != nil {
		t.Fatal(err)
	}
}

var alone = &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}

func on(node string) *csi.Topology {
	return &csi.Topology{Segments: map[string]string{"topology.csi.sluice.dev/node": node}}
}

func (s *started) capacity(t *testing.T, node string) *csi.GetCapacityResponse {
	t.Helper()
	answer, err := s.controller.GetCapacity(t.Context(), &csi.GetCapacityRequest{AccessibleTopology: on(node),
		VolumeCapabilities: []*csi.VolumeCapability{alone}, Parameters: map[string]string{"poolSelector": selector}})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// create creates a volume that one of these nodes reaches, the first if possible.
func (s *started) create(t *testing.T, name, selector string, nodes ...string) (*csi.Volume, error) {
	t.Helper()
	asked := &csi.TopologyRequirement{}
	for _, node := range nodes {
		asked.Preferred, asked.Requisite = append(asked.Preferred, on(node)), append(asked.Requisite, on(node))
	}
	answer, err := s.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: name, AccessibilityRequirements: asked,
		VolumeCapabilities: []*csi.VolumeCapability{alone}, Parameters: map[string]string{"poolSelector": selector},
		CapacityRange: &csi.CapacityRange{RequiredBytes: size}})
	return answer.GetVolume(), err
}

func refused(t *testing.T, err error, code codes.Code, says string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), says) {
		t.Errorf("wanted %s with %q, got %v", code, says, err)
	}
}

// D8: with one node full and one empty, the scheduler learns which of them has room, and the volume is created there.
func TestTheSchedulerLearnsWhichNodeIsFullAndAVolumeIsCreatedOnTheOther(t *testing.T) {
	empty, filled := small(t), small(t)
	s := start(t)
	s.localPool(t, "roomy", "node-1", empty)
	s.localPool(t, "full", "node-2", filled)
	if err := filled.Fill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := netns.Until(ctx, func() error {
		if room := s.capacity(t, "node-2"); room.GetMaximumVolumeSize().GetValue() >= size || room.GetAvailableCapacity() >= size {
			return fmt.Errorf("node-2 is full, and this is its room: %v", room)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	room := s.capacity(t, "node-1")
	if room.GetMaximumVolumeSize().GetValue() < size || room.GetAvailableCapacity() < size {
		t.Errorf("node-1 is empty, and this is its room: %v", room)
	}
	if away := s.capacity(t, "node-7"); away.GetMaximumVolumeSize().GetValue() != 0 || away.GetAvailableCapacity() != 0 {
		t.Errorf("node-7 has no pool, and this is its room: %v", away)
	}

	_, err := s.create(t, "on-the-full-node", selector, "node-2")
	refused(t, err, codes.ResourceExhausted, "full on node node-2 has room for")
	var first *csi.Volume
	for range 2 { // the second call repeats the first
		volume, err := s.create(t, "placed", selector, "node-2", "node-1")
		if err != nil {
			t.Fatal(err)
		}
		if where := volume.GetAccessibleTopology(); len(where) != 1 || where[0].String() != on("node-1").String() {
			t.Errorf("the volume is accessible from %v", where)
		}
		if first == nil {
			first = volume
		}
		if volume.GetVolumeId() != first.GetVolumeId() {
			t.Errorf("the repeated call created %s beside %s", volume.GetVolumeId(), first.GetVolumeId())
		}
	}
	_, err = s.create(t, "nowhere", "disk=none")
	refused(t, err, codes.ResourceExhausted, "no storage pool has the labels of the class's parameter poolSelector, disk=none")
	for _, wrong := range []struct{ pool, selector, words string }{
		{cluster.PoolName, selector, "the class has the parameters pool and poolSelector: it can have one of them"},
		{"", "disk", "parameter poolSelector is \"disk\" and not `LABEL=VALUE,...`"},
	} {
		_, err := s.controller.GetCapacity(t.Context(), &csi.GetCapacityRequest{
			Parameters: map[string]string{"pool": wrong.pool, "poolSelector": wrong.selector}})
		refused(t, err, codes.InvalidArgument, wrong.words)
	}
}
