package mirror

import (
	"context"

	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Volumes of a control plane.
func Volumes(connection grpc.ClientConnInterface) Noun[*pb.Volume] {
	service := pb.NewVolumeServiceClient(connection)
	return Noun[*pb.Volume]{
		Kind: "Volume",
		Get: func(ctx context.Context, name string) (*pb.Volume, error) {
			response, err := service.GetVolume(ctx, &pb.GetVolumeRequest{Name: name})
			return response.GetVolume(), err
		},
		Create: func(ctx context.Context, object *pb.Volume) (*pb.Volume, error) {
			response, err := service.CreateVolume(ctx, &pb.CreateVolumeRequest{Volume: object})
			return response.GetVolume(), err
		},
		Update: func(ctx context.Context, object *pb.Volume) (*pb.Volume, error) {
			response, err := service.UpdateVolume(ctx, &pb.UpdateVolumeRequest{Volume: object})
			return response.GetVolume(), err
		},
		Delete: func(ctx context.Context, name, uid string) (*pb.Volume, error) {
			response, err := service.DeleteVolume(ctx, &pb.DeleteVolumeRequest{Name: name, Options: only(uid)})
			return response.GetVolume(), err
		},
		Watch: func(ctx context.Context, version int64) (func() (Change[*pb.Volume], error), error) {
			stream, err := service.WatchVolumes(ctx, &pb.WatchVolumesRequest{Options: after(version)})
			return changes(stream, err, func(r *pb.WatchVolumesResponse) Change[*pb.Volume] {
				return Change[*pb.Volume]{r.GetType(), r.GetVolume(), r.GetResourceVersion()}
			})
		},
	}
}

// Snapshots of a control plane.
func Snapshots(connection grpc.ClientConnInterface) Noun[*pb.Snapshot] {
	service := pb.NewSnapshotServiceClient(connection)
	return Noun[*pb.Snapshot]{
		Kind: "Snapshot",
		Get: func(ctx context.Context, name string) (*pb.Snapshot, error) {
			response, err := service.GetSnapshot(ctx, &pb.GetSnapshotRequest{Name: name})
			return response.GetSnapshot(), err
		},
		Create: func(ctx context.Context, object *pb.Snapshot) (*pb.Snapshot, error) {
			response, err := service.CreateSnapshot(ctx, &pb.CreateSnapshotRequest{Snapshot: object})
			return response.GetSnapshot(), err
		},
		Update: func(ctx context.Context, object *pb.Snapshot) (*pb.Snapshot, error) {
			response, err := service.UpdateSnapshot(ctx, &pb.UpdateSnapshotRequest{Snapshot: object})
			return response.GetSnapshot(), err
		},
		Delete: func(ctx context.Context, name, uid string) (*pb.Snapshot, error) {
			response, err := service.DeleteSnapshot(ctx, &pb.DeleteSnapshotRequest{Name: name, Options: only(uid)})
			return response.GetSnapshot(), err
		},
		Watch: func(ctx context.Context, version int64) (func() (Change[*pb.Snapshot], error), error) {
			stream, err := service.WatchSnapshots(ctx, &pb.WatchSnapshotsRequest{Options: after(version)})
			return changes(stream, err, func(r *pb.WatchSnapshotsResponse) Change[*pb.Snapshot] {
				return Change[*pb.Snapshot]{r.GetType(), r.GetSnapshot(), r.GetResourceVersion()}
			})
		},
	}
}

// Targets of a control plane.
func Targets(connection grpc.ClientConnInterface) Noun[*pb.Target] {
	service := pb.NewTargetServiceClient(connection)
	return Noun[*pb.Target]{
		Kind: "Target",
		Get: func(ctx context.Context, name string) (*pb.Target, error) {
			response, err := service.GetTarget(ctx, &pb.GetTargetRequest{Name: name})
			return response.GetTarget(), err
		},
		Create: func(ctx context.Context, object *pb.Target) (*pb.Target, error) {
			response, err := service.CreateTarget(ctx, &pb.CreateTargetRequest{Target: object})
			return response.GetTarget(), err
		},
		Update: func(ctx context.Context, object *pb.Target) (*pb.Target, error) {
			response, err := service.UpdateTarget(ctx, &pb.UpdateTargetRequest{Target: object})
			return response.GetTarget(), err
		},
		Delete: func(ctx context.Context, name, uid string) (*pb.Target, error) {
			response, err := service.DeleteTarget(ctx, &pb.DeleteTargetRequest{Name: name, Options: only(uid)})
			return response.GetTarget(), err
		},
		Watch: func(ctx context.Context, version int64) (func() (Change[*pb.Target], error), error) {
			stream, err := service.WatchTargets(ctx, &pb.WatchTargetsRequest{Options: after(version)})
			return changes(stream, err, func(r *pb.WatchTargetsResponse) Change[*pb.Target] {
				return Change[*pb.Target]{r.GetType(), r.GetTarget(), r.GetResourceVersion()}
			})
		},
	}
}

// Hosts of a control plane.
func Hosts(connection grpc.ClientConnInterface) Noun[*pb.Host] {
	service := pb.NewHostServiceClient(connection)
	return Noun[*pb.Host]{
		Kind: "Host",
		Get: func(ctx context.Context, name string) (*pb.Host, error) {
			response, err := service.GetHost(ctx, &pb.GetHostRequest{Name: name})
			return response.GetHost(), err
		},
		Create: func(ctx context.Context, object *pb.Host) (*pb.Host, error) {
			response, err := service.CreateHost(ctx, &pb.CreateHostRequest{Host: object})
			return response.GetHost(), err
		},
		Update: func(ctx context.Context, object *pb.Host) (*pb.Host, error) {
			response, err := service.UpdateHost(ctx, &pb.UpdateHostRequest{Host: object})
			return response.GetHost(), err
		},
		Delete: func(ctx context.Context, name, uid string) (*pb.Host, error) {
			response, err := service.DeleteHost(ctx, &pb.DeleteHostRequest{Name: name, Options: only(uid)})
			return response.GetHost(), err
		},
		Watch: func(ctx context.Context, version int64) (func() (Change[*pb.Host], error), error) {
			stream, err := service.WatchHosts(ctx, &pb.WatchHostsRequest{Options: after(version)})
			return changes(stream, err, func(r *pb.WatchHostsResponse) Change[*pb.Host] {
				return Change[*pb.Host]{r.GetType(), r.GetHost(), r.GetResourceVersion()}
			})
		},
	}
}

// StoragePools of a control plane.
func StoragePools(connection grpc.ClientConnInterface) Noun[*pb.StoragePool] {
	service := pb.NewStoragePoolServiceClient(connection)
	return Noun[*pb.StoragePool]{
		Kind: "StoragePool",
		Get: func(ctx context.Context, name string) (*pb.StoragePool, error) {
			response, err := service.GetStoragePool(ctx, &pb.GetStoragePoolRequest{Name: name})
			return response.GetStoragePool(), err
		},
		Create: func(ctx context.Context, object *pb.StoragePool) (*pb.StoragePool, error) {
			response, err := service.CreateStoragePool(ctx, &pb.CreateStoragePoolRequest{StoragePool: object})
			return response.GetStoragePool(), err
		},
		Update: func(ctx context.Context, object *pb.StoragePool) (*pb.StoragePool, error) {
			response, err := service.UpdateStoragePool(ctx, &pb.UpdateStoragePoolRequest{StoragePool: object})
			return response.GetStoragePool(), err
		},
		Delete: func(ctx context.Context, name, uid string) (*pb.StoragePool, error) {
			response, err := service.DeleteStoragePool(ctx, &pb.DeleteStoragePoolRequest{Name: name, Options: only(uid)})
			return response.GetStoragePool(), err
		},
		Watch: func(ctx context.Context, version int64) (func() (Change[*pb.StoragePool], error), error) {
			stream, err := service.WatchStoragePools(ctx, &pb.WatchStoragePoolsRequest{Options: after(version)})
			return changes(stream, err, func(r *pb.WatchStoragePoolsResponse) Change[*pb.StoragePool] {
				return Change[*pb.StoragePool]{r.GetType(), r.GetStoragePool(), r.GetResourceVersion()}
			})
		},
	}
}

// Fabrics of a control plane.
func Fabrics(connection grpc.ClientConnInterface) Noun[*pb.Fabric] {
	service := pb.NewFabricServiceClient(connection)
	return Noun[*pb.Fabric]{
		Kind: "Fabric",
		Get: func(ctx context.Context, name string) (*pb.Fabric, error) {
			response, err := service.GetFabric(ctx, &pb.GetFabricRequest{Name: name})
			return response.GetFabric(), err
		},
		Create: func(ctx context.Context, object *pb.Fabric) (*pb.Fabric, error) {
			response, err := service.CreateFabric(ctx, &pb.CreateFabricRequest{Fabric: object})
			return response.GetFabric(), err
		},
		Update: func(ctx context.Context, object *pb.Fabric) (*pb.Fabric, error) {
			response, err := service.UpdateFabric(ctx, &pb.UpdateFabricRequest{Fabric: object})
			return response.GetFabric(), err
		},
		Delete: func(ctx context.Context, name, uid string) (*pb.Fabric, error) {
			response, err := service.DeleteFabric(ctx, &pb.DeleteFabricRequest{Name: name, Options: only(uid)})
			return response.GetFabric(), err
		},
		Watch: func(ctx context.Context, version int64) (func() (Change[*pb.Fabric], error), error) {
			stream, err := service.WatchFabrics(ctx, &pb.WatchFabricsRequest{Options: after(version)})
			return changes(stream, err, func(r *pb.WatchFabricsResponse) Change[*pb.Fabric] {
				return Change[*pb.Fabric]{r.GetType(), r.GetFabric(), r.GetResourceVersion()}
			})
		},
	}
}

// GatewayPools of a control plane.
func GatewayPools(connection grpc.ClientConnInterface) Noun[*pb.GatewayPool] {
	service := pb.NewGatewayPoolServiceClient(connection)
	return Noun[*pb.GatewayPool]{
		Kind: "GatewayPool",
		Get: func(ctx context.Context, name string) (*pb.GatewayPool, error) {
			response, err := service.GetGatewayPool(ctx, &pb.GetGatewayPoolRequest{Name: name})
			return response.GetGatewayPool(), err
		},
		Create: func(ctx context.Context, object *pb.GatewayPool) (*pb.GatewayPool, error) {
			response, err := service.CreateGatewayPool(ctx, &pb.CreateGatewayPoolRequest{GatewayPool: object})
			return response.GetGatewayPool(), err
		},
		Update: func(ctx context.Context, object *pb.GatewayPool) (*pb.GatewayPool, error) {
			response, err := service.UpdateGatewayPool(ctx, &pb.UpdateGatewayPoolRequest{GatewayPool: object})
			return response.GetGatewayPool(), err
		},
		Delete: func(ctx context.Context, name, uid string) (*pb.GatewayPool, error) {
			response, err := service.DeleteGatewayPool(ctx, &pb.DeleteGatewayPoolRequest{Name: name, Options: only(uid)})
			return response.GetGatewayPool(), err
		},
		Watch: func(ctx context.Context, version int64) (func() (Change[*pb.GatewayPool], error), error) {
			stream, err := service.WatchGatewayPools(ctx, &pb.WatchGatewayPoolsRequest{Options: after(version)})
			return changes(stream, err, func(r *pb.WatchGatewayPoolsResponse) Change[*pb.GatewayPool] {
				return Change[*pb.GatewayPool]{r.GetType(), r.GetGatewayPool(), r.GetResourceVersion()}
			})
		},
	}
}

// Gateways of a control plane.
func Gateways(connection grpc.ClientConnInterface) Noun[*pb.Gateway] {
	service := pb.NewGatewayServiceClient(connection)
	return Noun[*pb.Gateway]{
		Kind: "Gateway",
		Get: func(ctx context.Context, name string) (*pb.Gateway, error) {
			response, err := service.GetGateway(ctx, &pb.GetGatewayRequest{Name: name})
			return response.GetGateway(), err
		},
		Create: func(ctx context.Context, object *pb.Gateway) (*pb.Gateway, error) {
			response, err := service.CreateGateway(ctx, &pb.CreateGatewayRequest{Gateway: object})
			return response.GetGateway(), err
		},
		Update: func(ctx context.Context, object *pb.Gateway) (*pb.Gateway, error) {
			response, err := service.UpdateGateway(ctx, &pb.UpdateGatewayRequest{Gateway: object})
			return response.GetGateway(), err
		},
		Delete: func(ctx context.Context, name, uid string) (*pb.Gateway, error) {
			response, err := service.DeleteGateway(ctx, &pb.DeleteGatewayRequest{Name: name, Options: only(uid)})
			return response.GetGateway(), err
		},
		Watch: func(ctx context.Context, version int64) (func() (Change[*pb.Gateway], error), error) {
			stream, err := service.WatchGateways(ctx, &pb.WatchGatewaysRequest{Options: after(version)})
			return changes(stream, err, func(r *pb.WatchGatewaysResponse) Change[*pb.Gateway] {
				return Change[*pb.Gateway]{r.GetType(), r.GetGateway(), r.GetResourceVersion()}
			})
		},
	}
}
