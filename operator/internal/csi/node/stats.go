package node

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NodeGetVolumeStats implements csi.NodeServer.
func (s *Service) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if r.GetVolumeId() == "" || r.GetVolumePath() == "" {
		return nil, invalid("volume id or volume path is missing")
	}
	staged, err := s.state.get(r.GetVolumeId())
	if err != nil {
		return nil, status.Errorf(codes.Internal, "state: %s", err)
	}
	at, err := s.mountedAt(r.GetVolumePath())
	if err != nil {
		return nil, internal(err)
	}
	if staged == nil || at == nil {
		return nil, status.Errorf(codes.NotFound, "volume %s is not at %s", r.GetVolumeId(), r.GetVolumePath())
	}
	found, err := s.find(staged.Attachment)
	if err != nil {
		return nil, internal(err)
	}
	response := &csi.NodeGetVolumeStatsResponse{}
	if staged.Block {
		if found != nil {
			response.Usage = []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: found.bytes}}
		}
		return response, nil
	}
	of, err := s.usage(r.GetVolumePath())
	if err != nil {
		return nil, internal(err)
	}
	size := of.Frsize
	response.Usage = []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: int64(of.Blocks) * size, Available: int64(of.Bavail) * size,
			Used: int64(of.Blocks-of.Bfree) * size},
		{Unit: csi.VolumeUsage_INODES, Total: int64(of.Files), Available: int64(of.Ffree), Used: int64(of.Files - of.Ffree)},
	}
	return response, nil
}
