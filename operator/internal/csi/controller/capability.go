package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Access modes by the number of nodes.
var (
	singleNode = []csi.VolumeCapability_AccessMode_Mode{
		csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER}
	multiNode = []csi.VolumeCapability_AccessMode_Mode{
		csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER}
)

// fileSystems that nodes can make.
var fileSystems = []string{"", "ext4", "xfs"}

// unsupported returns why volumes cannot have a capability; empty: they can. A file system belongs to one node: the kernels of
// two nodes would each use their own caches, and destroy it.
func unsupported(capability *csi.VolumeCapability) string {
	mode := capability.GetAccessMode().GetMode()
	switch {
	case capability.GetBlock() == nil && capability.GetMount() == nil:
		return "neither block nor mount is asked for"
	case slices.Contains(multiNode, mode) && capability.GetBlock() == nil:
		return fmt.Sprintf("%s of a file system would destroy it: several nodes can share raw block volumes only", mode)
	case !slices.Contains(multiNode, mode) && !slices.Contains(singleNode, mode):
		return fmt.Sprintf("access mode %s is not known", mode)
	case !slices.Contains(fileSystems, capability.GetMount().GetFsType()):
		return fmt.Sprintf("file system %q is not possible: ext4 and xfs are", capability.GetMount().GetFsType())
	}
	return ""
}

func checkCapabilities(all []*csi.VolumeCapability) error {
	if len(all) == 0 {
		return invalid("volume capabilities are missing")
	}
	for _, capability := range all {
		if why := unsupported(capability); why != "" {
			return invalid("%s", why)
		}
	}
	return nil
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (s *Service) ValidateVolumeCapabilities(ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, invalid("volume id is missing")
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, invalid("volume capabilities are missing")
	}
	if _, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: r.GetVolumeId()}); err != nil {
		return nil, clientError(err)
	}
	for _, capability := range r.GetVolumeCapabilities() {
		if why := unsupported(capability); why != "" {
			return &csi.ValidateVolumeCapabilitiesResponse{Message: why}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}
