package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// GetCapacity implements csi.ControllerServer: it returns the free space of the pools of a class, for a topology. The scheduler
// compares a claim with MaximumVolumeSize, so that is the free space of the pool that has most of it. Volumes are thin: the driver
// itself creates larger ones where a class names one pool.
func (s *Service) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	p, err := readParameters(r.GetParameters())
	if err != nil {
		return nil, err
	}
	response := &csi.GetCapacityResponse{MaximumVolumeSize: wrapperspb.Int64(0), MinimumVolumeSize: wrapperspb.Int64(minimumSize)}
	for _, capability := range r.GetVolumeCapabilities() {
		if unsupported(capability) != "" {
			return response, nil
		}
	}
	pools, err := s.poolsOf(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, pool := range pools {
		if !within(segments(pool, p.topology), r.GetAccessibleTopology()) {
			continue
		}
		free := room(pool)
		response.AvailableCapacity += free
		response.MaximumVolumeSize.Value = max(response.GetMaximumVolumeSize().GetValue(), largest(pool, free))
	}
	return response, nil
}
