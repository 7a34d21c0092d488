package node

import (
	"context"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

// volume has the parameters of kubelet's calls for a volume.
type volume struct {
	*Service
	machine    *machine
	id         string
	attachment attachment.Attachment
	capability *csi.VolumeCapability
	secrets    map[string]string
}

func rawBlock() *csi.VolumeCapability {
	return &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
}

func fileSystem() *csi.VolumeCapability {
	return &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}
}

// volume returns LUN 5 of the target, published when there was one portal.
func (m *machine) volume(s *Service, capability *csi.VolumeCapability) *volume {
	return &volume{Service: s, machine: m, id: "volume-5", capability: capability,
		attachment: attachment.Attachment{IQN: iqn, LUN: 5, NAA: naaRight, Portals: []string{one}}}
}

func (v *volume) staging() string { return filepath.Join(v.machine.root, "kubelet", v.id, "staging") }

func (v *volume) target() string { return filepath.Join(v.machine.root, "kubelet", v.id, "target") }

func (v *volume) stage(ctx context.Context) error {
	_, err := v.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging(),
		VolumeCapability: v.capability, PublishContext: v.attachment.Context(), Secrets: v.secrets})
	return err
}

func (v *volume) publish(ctx context.Context) error {
	_, err := v.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging(),
		TargetPath: v.target(), VolumeCapability: v.capability, PublishContext: v.attachment.Context()})
	return err
}

func (v *volume) unpublish(ctx context.Context) error {
	_, err := v.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target()})
	return err
}

func (v *volume) unstage(ctx context.Context) error {
	_, err := v.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging()})
	return err
}

func (v *volume) expand(ctx context.Context, bytes int64) error {
	_, err := v.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumeId: v.id, VolumePath: v.target(),
		CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}})
	return err
}

const secret, mutualSecret = "own-secret-123", "their-secret-123"

func chapSecrets() map[string]string {
	return map[string]string{"node.session.auth.username": "node", "node.session.auth.password": secret,
		"node.session.auth.username_in": "target", "node.session.auth.password_in": mutualSecret}
}
