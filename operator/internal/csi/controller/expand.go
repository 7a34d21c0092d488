package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// ControllerExpandVolume implements csi.ControllerServer. Volumes can grow while they are in use.
func (s *Service) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, invalid("volume id is missing")
	}
	if r.GetCapacityRange() == nil {
		return nil, invalid("capacity range is missing")
	}
	var size int64
	err := s.changeVolume(ctx, r.GetVolumeId(), "spec.size_bytes", func(volume *pb.Volume) (grows bool, err error) {
		size = volume.GetSpec().GetSizeBytes()
		if r.GetCapacityRange().GetRequiredBytes() <= size {
			return false, nil
		}
		size, err = sizeFor(r.GetCapacityRange(), 0)
		volume.Spec.SizeBytes = size
		return true, err
	})
	if err != nil {
		return nil, err
	}
	err = wait(ctx, func(ctx context.Context) (string, error) {
		got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: r.GetVolumeId()})
		if err != nil || got.GetVolume().GetStatus().GetCapacityBytes() >= size {
			return "", err
		}
		return "volume " + r.GetVolumeId() + " grows: " + problem(got.GetVolume().GetStatus().GetConditions()), nil
	})
	// A raw block device must grow on the node, too: its paths and its map must be rescanned.
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, err
}
