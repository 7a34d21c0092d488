package node_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const mebibyte = 1 << 20

// volume is a volume as used by a pod.
type volume struct {
	t          *testing.T
	id         string
	capability *csi.VolumeCapability
	context    map[string]string // of its publication
	staging    string
	target     string
}

func fileSystem(kind string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: kind}}}
}

func rawBlock() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
}

// newVolume creates a volume, which is removed when the test ends.
func newVolume(t *testing.T, capability *csi.VolumeCapability, mebibytes int64) *volume {
	t.Helper()
	made, err := env.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")) +
		"-" + filepath.Base(t.TempDir()), VolumeCapabilities: []*csi.VolumeCapability{capability},
		CapacityRange: &csi.CapacityRange{RequiredBytes: mebibytes * mebibyte}, Parameters: map[string]string{"topology": "any"}})
	if err != nil {
		t.Fatal(err)
	}
	v := &volume{t: t, id: made.GetVolume().GetVolumeId(), capability: capability}
	v.staging, v.target = filepath.Join(kubelet, v.id, "staging"), filepath.Join(kubelet, v.id, "pod", "target")
	t.Cleanup(func() {
		if t.Failed() {
			seen, _ := exec.Command("lsscsi", "-i").CombinedOutput()
			log, _ := exec.Command("dmesg").CombinedOutput()
			t.Logf("published as %v; the kernel has\n%s\n%s", v.context, seen, log[max(0, len(log)-2500):])
		}
		ctx := context.Background()
		_, unpublished := env.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target})
		_, unstaged := env.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging})
		_, withdrawn := env.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: v.id})
		_, deleted := env.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.id})
		for _, err := range []error{unpublished, unstaged, withdrawn, deleted} {
			if err != nil {
				t.Error("clean up:", err)
			}
		}
	})
	return v
}

func (v *volume) attach() {
	v.t.Helper()
	published, err := env.controller.ControllerPublishVolume(v.t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: v.id,
		NodeId: env.nodeID, VolumeCapability: v.capability})
	if err != nil {
		v.t.Fatal(err)
	}
	v.context = published.GetPublishContext()
}

// again repeats a call as kubelet does while another call works on the volume.
func again(ctx context.Context, call func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if err = call(ctx); status.Code(err) != codes.Aborted {
			return err
		}
		time.Sleep(comeAgain)
	}
}

// comesAgain is the same for a client that treats ABORTED as a failure, such as csi-sanity.
func comesAgain(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	return again(ctx, func(ctx context.Context) error { return invoke(ctx, method, request, reply, connection, options...) })
}

const comeAgain = 500 * time.Millisecond // as kubelet at first

func (v *volume) tryStage() error {
	return again(v.t.Context(), func(ctx context.Context) error {
		_, err := env.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging,
			VolumeCapability: v.capability, PublishContext: v.context})
		return err
	})
}

// mount stages and publishes, both twice: kubelet repeats a call when it is not sure.
func (v *volume) mount() {
	v.t.Helper()
	for range 2 {
		if err := v.tryStage(); err != nil {
			v.t.Fatal(err)
		}
	}
	for range 2 {
		err := again(v.t.Context(), func(ctx context.Context) error {
			_, err := env.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging,
				TargetPath: v.target, VolumeCapability: v.capability, PublishContext: v.context})
			return err
		})
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

func (v *volume) unpublish() {
	v.t.Helper()
	for range 2 {
		err := again(v.t.Context(), func(ctx context.Context) error {
			_, err := env.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target})
			return err
		})
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

func (v *volume) unstage() {
	v.t.Helper()
	err := again(v.t.Context(), func(ctx context.Context) error {
		_, err := env.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging})
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *volume) unmount() {
	v.t.Helper()
	v.unpublish()
	for range 2 {
		v.unstage()
	}
}

func (v *volume) detach() {
	v.t.Helper()
	_, err := env.controller.ControllerUnpublishVolume(v.t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: v.id, NodeId: env.nodeID})
	if err != nil {
		v.t.Fatal(err)
	}
}

// grow enlarges the volume to a size in MiB, while it is used.
func (v *volume) grow(mebibytes int64) {
	v.t.Helper()
	size := &csi.CapacityRange{RequiredBytes: mebibytes * mebibyte}
	grown, err := env.controller.ControllerExpandVolume(v.t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: v.id, CapacityRange: size})
	if err != nil {
		v.t.Fatal(err)
	}
	if !grown.GetNodeExpansionRequired() {
		v.t.Error("the node is not asked to expand")
	}
	err = again(v.t.Context(), func(ctx context.Context) error {
		_, err := env.node.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumeId: v.id, VolumePath: v.target,
			StagingTargetPath: v.staging, CapacityRange: size})
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
}

// bytes returns the size that the pod sees.
func (v *volume) bytes() int64 {
	v.t.Helper()
	stats, err := env.node.NodeGetVolumeStats(v.t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: v.id, VolumePath: v.target})
	if err != nil {
		v.t.Fatal(err)
	}
	return stats.GetUsage()[0].GetTotal()
}
