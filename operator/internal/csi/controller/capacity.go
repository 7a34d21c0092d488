package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// eachPool calls a function for each storage pool.
func (s *Service) eachPool(ctx context.Context, call func(*pb.StoragePool)) error {
	for pool, err := range client.All(ctx, s.pools.ListStoragePools, &pb.ListStoragePoolsRequest{},
		(*pb.ListStoragePoolsResponse).GetStoragePools) {
		if err != nil {
			return clientError(err)
		}
		call(pool)
	}
	return nil
}

// GetCapacity implements csi.ControllerServer: it returns the free space of the class's pool, for a topology. Volumes are thin,
// so more can be provisioned.
func (s *Service) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	p, err := readParameters(r.GetParameters())
	if err != nil {
		return nil, err
	}
	response := &csi.GetCapacityResponse{MaximumVolumeSize: wrapperspb.Int64(maximumSize),
		MinimumVolumeSize: wrapperspb.Int64(minimumSize)}
	for _, capability := range r.GetVolumeCapabilities() {
		if unsupported(capability) != "" {
			return response, nil
		}
	}
	return response, s.eachPool(ctx, func(pool *pb.StoragePool) {
		if p.pool != "" && p.pool != pool.GetMeta().GetName() || !within(segments(pool, p.topology), r.GetAccessibleTopology()) {
			return
		}
		response.AvailableCapacity += max(0, pool.GetStatus().GetCapacityBytes()-pool.GetStatus().GetUsedBytes())
	})
}
