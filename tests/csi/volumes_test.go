package csi_test

import (
	"context"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"sluice.dev/sluice/tests/cluster"
)

// background is for cleanup after a test's own context has ended.
var background = context.Background()

const topologyKey = "topology.csi.sluice.dev/node"

func on(node string) *csi.Topology {
	return &csi.Topology{Segments: map[string]string{topologyKey: node}}
}

func TestAVolumeOfALocalPoolIsPinnedToItsNodeUnlessTheClassSaysOtherwise(t *testing.T) {
	ask := func(topology map[string]string, node string) (*csi.CreateVolumeResponse, error) {
		return env.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "pinned-" + topology["topology"] + node,
			VolumeCapabilities: []*csi.VolumeCapability{alone}, Parameters: topology, CapacityRange: &csi.CapacityRange{RequiredBytes: 16 << 20},
			AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{on(node)}}})
	}
	_, err := ask(nil, "node-7")
	refused(t, err, codes.ResourceExhausted, "topology: any")
	for _, topology := range []map[string]string{nil, {"topology": "any"}} {
		made, err := ask(topology, map[bool]string{true: "node-1", false: "node-7"}[topology == nil])
		if err != nil {
			t.Fatal(err)
		}
		if pinned := len(made.GetVolume().GetAccessibleTopology()) > 0; pinned != (topology == nil) {
			t.Errorf("%v: accessible from %v", topology, made.GetVolume().GetAccessibleTopology())
		}
		if _, err := env.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: made.GetVolume().GetVolumeId()}); err != nil {
			t.Error(err)
		}
	}
	away, err := env.controller.GetCapacity(t.Context(), &csi.GetCapacityRequest{AccessibleTopology: on("node-7")})
	if err != nil || away.GetAvailableCapacity() != 0 {
		t.Errorf("from another node %d bytes are free: %v", away.GetAvailableCapacity(), err)
	}
}

func TestAVolumeThatPeopleMadeIsNotDeletedHere(t *testing.T) {
	_, err := env.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: cluster.VolumeName(0)})
	refused(t, err, codes.FailedPrecondition, "was not made by")
	if _, err := env.Control(t.Context(), "volume", "get", cluster.VolumeName(0)); err != nil {
		t.Error(err)
	}
}

func TestAVolumeThatIsPublishedIsNotDeleted(t *testing.T) {
	id := create(t, "in-use", alone, nil)
	published(t, id, here, alone)
	_, err := env.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
	refused(t, err, codes.FailedPrecondition, here)
}

func TestAnAttributesClassSetsLimitsAndLeavesTheOthers(t *testing.T) {
	id := create(t, "limited", alone, nil)
	modify := func(parameters map[string]string) error {
		_, err := env.controller.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: id, MutableParameters: parameters})
		return err
	}
	for _, step := range []map[string]string{{"iops": "500", "iopsBurst": "1000"}, {"bytesPerSecond": "10485760"}} {
		if err := modify(step); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := env.Control(t.Context(), "volume", "get", id, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	compact := strings.ReplaceAll(string(shown), " ", "")
	for _, field := range []string{`"iops":"500"`, `"iopsBurst":"1000"`, `"bytesPerSecond":"10485760"`} {
		if !strings.Contains(compact, field) {
			t.Errorf("no %s in %s", field, shown)
		}
	}
	refused(t, modify(map[string]string{"bytesPerSecond": "10"}), codes.InvalidArgument, "bytesPerSecond")
	refused(t, modify(map[string]string{"size": "10"}), codes.InvalidArgument, "iopsBurst")
}

func TestAParameterThatIsNotKnownIsNamed(t *testing.T) {
	_, err := env.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "typo", Parameters: map[string]string{"pol": "pool"},
		VolumeCapabilities: []*csi.VolumeCapability{alone}})
	refused(t, err, codes.InvalidArgument, `"pol"`)
}
