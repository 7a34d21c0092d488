package node

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/operator/internal/csi/host"
)

// NodePublishVolume implements csi.NodeServer: it makes the file system, or the device, available at one more path.
func (s *Service) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	switch {
	case r.GetVolumeId() == "":
		return nil, invalid("volume id is missing")
	case r.GetTargetPath() == "":
		return nil, invalid("target path is missing")
	case r.GetVolumeCapability() == nil:
		return nil, invalid("volume capability is missing")
	}
	ctx, staged, done, err := s.work(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer done()
	if staged == nil || r.GetStagingTargetPath() == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not staged", r.GetVolumeId())
	}
	if staged.Block != (r.GetVolumeCapability().GetBlock() != nil) {
		return nil, invalid("volume %s is staged as %s, and asked for in the other way", staged.Volume, staged.kind())
	}
	s.requestCheck(staged.IQN)
	return &csi.NodePublishVolumeResponse{}, internalOr(s.publish(ctx, staged, r))
}

func (r *record) kind() string {
	if r.Block {
		return "raw block"
	}
	return r.FileSystem
}

func (s *Service) publish(ctx context.Context, staged *record, r *csi.NodePublishVolumeRequest) error {
	found, err := s.find(staged.Attachment)
	if err != nil {
		return err
	}
	if found == nil {
		return status.Errorf(codes.FailedPrecondition, "volume %s has no device: its map of NAA %s is gone", staged.Volume, staged.NAA)
	}
	point := filepath.Clean(r.GetTargetPath())
	all, shown, err := s.mounts(point, staged.Staging)
	if err != nil {
		return err
	}
	at, staging := shown[0], shown[1]
	single := r.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	for _, m := range all {
		showsVolume := shows(m, staged, found)
		switch {
		case m.point == at && showsVolume:
			return nil
		case m.point == at:
			return status.Errorf(codes.Internal, "something else is mounted at %s", point)
		case single && showsVolume && m.point != staging:
			return status.Errorf(codes.FailedPrecondition, "volume %s is published at %s, and one pod at a time may have it", staged.Volume, m.point)
		}
	}
	if err := s.makePoint(point, staged.Block); err != nil {
		return err
	}
	from := staged.Staging
	if staged.Block {
		from = found.node()
	}
	if _, err := s.host.Run(ctx, host.New("mount", "--bind", from, point)); err != nil {
		return err
	}
	if !r.GetReadonly() || staged.Block { // a device's file is read-only because of its LUN, not its mount
		return nil
	}
	if _, err := s.host.Run(ctx, host.New("mount", "-o", "remount,bind,ro", point)); err != nil {
		_ = s.unmount(ctx, point) // it must not stay writable
		return err
	}
	return nil
}

// shows reports whether a mount belongs to the volume: its file system, or the file of its device.
func shows(at mount, staged *record, found *multipathMap) bool {
	if staged.Block {
		return strings.HasSuffix(at.root, "/"+found.device)
	}
	return at.number == found.number
}

// NodeUnpublishVolume implements csi.NodeServer.
func (s *Service) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	if r.GetVolumeId() == "" || r.GetTargetPath() == "" {
		return nil, invalid("volume id or target path is missing")
	}
	done, err := s.busy.Begin(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer done()
	if err := s.unmount(ctx, r.GetTargetPath()); err != nil {
		return nil, internal(err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, internalOr(s.removePoint(r.GetTargetPath()))
}
