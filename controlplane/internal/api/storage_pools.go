package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// StoragePools serves StoragePoolService.
type StoragePools struct {
	pb.UnimplementedStoragePoolServiceServer
	kind kind[*model.StoragePool, *pb.StoragePool]
}

// NewStoragePools makes the service.
func NewStoragePools(s *store.Store, counts *Counts) *StoragePools {
	return &StoragePools{kind: kind[*model.StoragePool, *pb.StoragePool]{
		objects: s.StoragePools, read: readStoragePool, show: showStoragePool,
		fill: counts.storagePools, keep: store.KeepPoolSecret,
	}}
}

// CreateStoragePool implements StoragePoolService.
func (x *StoragePools) CreateStoragePool(ctx context.Context, r *pb.CreateStoragePoolRequest) (*pb.CreateStoragePoolResponse, error) {
	made, err := x.kind.create(ctx, r.GetStoragePool(), r.GetDryRun())
	return &pb.CreateStoragePoolResponse{StoragePool: made}, err
}

// GetStoragePool implements StoragePoolService.
func (x *StoragePools) GetStoragePool(ctx context.Context, r *pb.GetStoragePoolRequest) (*pb.GetStoragePoolResponse, error) {
	got, err := x.kind.get(ctx, r.GetName())
	return &pb.GetStoragePoolResponse{StoragePool: got}, err
}

// ListStoragePools implements StoragePoolService.
func (x *StoragePools) ListStoragePools(ctx context.Context, r *pb.ListStoragePoolsRequest) (*pb.ListStoragePoolsResponse, error) {
	all, next, version, err := x.kind.list(ctx, r)
	return &pb.ListStoragePoolsResponse{StoragePools: all, NextPageToken: next, ResourceVersion: version}, err
}

// UpdateStoragePool implements StoragePoolService.
func (x *StoragePools) UpdateStoragePool(ctx context.Context, r *pb.UpdateStoragePoolRequest) (*pb.UpdateStoragePoolResponse, error) {
	changed, err := x.kind.update(ctx, r.GetStoragePool(), r.GetUpdateMask(), r.GetDryRun())
	return &pb.UpdateStoragePoolResponse{StoragePool: changed}, err
}

// DeleteStoragePool implements StoragePoolService.
func (x *StoragePools) DeleteStoragePool(ctx context.Context, r *pb.DeleteStoragePoolRequest) (*pb.DeleteStoragePoolResponse, error) {
	gone, err := x.kind.delete(ctx, r.GetName(), r.GetOptions(), r.GetDryRun())
	return &pb.DeleteStoragePoolResponse{StoragePool: gone}, err
}

// WatchStoragePools implements StoragePoolService.
func (x *StoragePools) WatchStoragePools(r *pb.WatchStoragePoolsRequest, stream pb.StoragePoolService_WatchStoragePoolsServer) error {
	return watch(x.kind, stream, r.GetOptions(), func(t pb.ChangeType, o *pb.StoragePool, v int64) *pb.WatchStoragePoolsResponse {
		return &pb.WatchStoragePoolsResponse{Type: t, StoragePool: o, ResourceVersion: v}
	})
}

func readStoragePool(m *pb.StoragePool) *model.StoragePool {
	pool := &model.StoragePool{Meta: readMeta(m.GetMeta()),
		Spec: model.StoragePoolSpec{WarnPercent: m.GetSpec().GetWarnPercent(), GatewayPools: m.GetSpec().GetGatewayPools(),
			AdoptableImages: m.GetSpec().GetAdoptableImages(),
			Adoptions:       m.GetSpec().GetAdoptions()}}
	if local := m.GetSpec().GetLocal(); local != nil {
		pool.Spec.Local = &model.LocalPool{
			Node: local.GetNode(), Directory: local.GetDirectory(), Devices: local.GetDevices(),
		}
	}
	if rbd := m.GetSpec().GetRbd(); rbd != nil {
		pool.Spec.RBD = &model.RBDPool{
			Monitors: rbd.GetMonitors(), User: rbd.GetUser(), Key: model.NewSecret(rbd.GetKey()), Pool: rbd.GetPool(),
			RadosNamespace: rbd.GetRadosNamespace(), DataPool: rbd.GetDataPool(),
		}
	}
	return pool
}

// showStoragePool omits the key.
func showStoragePool(p *model.StoragePool) *pb.StoragePool {
	shown := &pb.StoragePool{
		Meta: showMeta(&p.Meta),
		Spec: &pb.StoragePoolSpec{WarnPercent: p.Spec.WarnPercent, GatewayPools: p.Spec.GatewayPools,
			AdoptableImages: p.Spec.AdoptableImages,
			Adoptions:       p.Spec.Adoptions},
		Status: &pb.StoragePoolStatus{
			CapacityBytes: p.Status.CapacityBytes, UsedBytes: p.Status.UsedBytes,
			SnapshotsSupported: p.Status.SnapshotsSupported, Conditions: showConditions(p.Status.Conditions),
			OrphanedImages:     p.Status.OrphanedImages[:min(len(p.Status.OrphanedImages), model.MaxOrphansShown)],
			OrphanedImageCount: p.Status.OrphanedImageCount,
			MissingImages:      p.Status.MissingImages[:min(len(p.Status.MissingImages), model.MaxOrphansShown)],
			MissingImageCount:  int32(len(p.Status.MissingImages)), MaxVolumeBytes: p.Status.MaxVolumeBytes,
			Marker: p.Status.Marker, MarkerAdoptions: p.Status.MarkerAdoptions,
		},
	}
	if local := p.Spec.Local; local != nil {
		shown.Spec.Kind = &pb.StoragePoolSpec_Local{Local: &pb.LocalPool{
			Node: local.Node, Directory: local.Directory, Devices: local.Devices,
		}}
	}
	if rbd := p.Spec.RBD; rbd != nil {
		shown.Spec.Kind = &pb.StoragePoolSpec_Rbd{Rbd: &pb.RbdPool{
			Monitors: rbd.Monitors, User: rbd.User, Pool: rbd.Pool, RadosNamespace: rbd.RadosNamespace,
			DataPool: rbd.DataPool,
		}}
	}
	return shown
}
