// Package controller serves CSI's Controller service: volumes, snapshots and their publication, as objects of the control plane.
// It has no state. A repeated call finds the objects of the earlier one.
package controller

import (
	"context"
	"crypto/ecdh"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"sluice.dev/sluice/operator/internal/csi/inflight"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Service is CSI's Controller service.
type Service struct {
	csi.UnimplementedControllerServer
	volumes      pb.VolumeServiceClient
	snapshots    pb.SnapshotServiceClient
	targets      pb.TargetServiceClient
	hosts        pb.HostServiceClient
	pools        pb.StoragePoolServiceClient
	gatewayPools pb.GatewayPoolServiceClient
	gateways     pb.GatewayServiceClient
	busy         inflight.Calls
	// key is the driver's key, from which nodes' CHAP secrets are derived.
	key *ecdh.PrivateKey
}

// New returns the service. The connection leads to a control plane, with the role csi.
func New(connection grpc.ClientConnInterface, key *ecdh.PrivateKey) *Service {
	return &Service{
		key:     key,
		volumes: pb.NewVolumeServiceClient(connection), snapshots: pb.NewSnapshotServiceClient(connection),
		targets: pb.NewTargetServiceClient(connection), hosts: pb.NewHostServiceClient(connection),
		pools: pb.NewStoragePoolServiceClient(connection), gatewayPools: pb.NewGatewayPoolServiceClient(connection),
		gateways: pb.NewGatewayServiceClient(connection),
	}
}

// Works returns the error that prevents the service from working: the control plane must answer.
func (s *Service) Works(ctx context.Context) error {
	_, err := s.pools.ListStoragePools(ctx, &pb.ListStoragePoolsRequest{Options: &pb.ListOptions{PageSize: 1}})
	return clientError(err)
}

var capabilities = []csi.ControllerServiceCapability_RPC_Type{
	csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
	csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
	csi.ControllerServiceCapability_RPC_PUBLISH_READONLY,
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
	csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
	csi.ControllerServiceCapability_RPC_GET_VOLUME,
	csi.ControllerServiceCapability_RPC_GET_CAPACITY,
	csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
	csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
	csi.ControllerServiceCapability_RPC_GET_SNAPSHOT,
	csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
	csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
}

// ControllerGetCapabilities implements csi.ControllerServer.
func (s *Service) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, capability := range capabilities {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}}})
	}
	return response, nil
}
