package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// GatewayPools serves GatewayPoolService.
type GatewayPools struct {
	pb.UnimplementedGatewayPoolServiceServer
	kind kind[*model.GatewayPool, *pb.GatewayPool]
}

// NewGatewayPools makes the service.
func NewGatewayPools(s *store.Store, counts *Counts) *GatewayPools {
	return &GatewayPools{kind: kind[*model.GatewayPool, *pb.GatewayPool]{
		objects: s.GatewayPools, read: readGatewayPool, show: showGatewayPool, fill: counts.gatewayPools,
	}}
}

// CreateGatewayPool implements GatewayPoolService.
func (x *GatewayPools) CreateGatewayPool(ctx context.Context, r *pb.CreateGatewayPoolRequest) (*pb.CreateGatewayPoolResponse, error) {
	made, err := x.kind.create(ctx, r.GetGatewayPool(), r.GetDryRun())
	return &pb.CreateGatewayPoolResponse{GatewayPool: made}, err
}

// GetGatewayPool implements GatewayPoolService.
func (x *GatewayPools) GetGatewayPool(ctx context.Context, r *pb.GetGatewayPoolRequest) (*pb.GetGatewayPoolResponse, error) {
	got, err := x.kind.get(ctx, r.GetName())
	return &pb.GetGatewayPoolResponse{GatewayPool: got}, err
}

// ListGatewayPools implements GatewayPoolService.
func (x *GatewayPools) ListGatewayPools(ctx context.Context, r *pb.ListGatewayPoolsRequest) (*pb.ListGatewayPoolsResponse, error) {
	all, next, version, err := x.kind.list(ctx, r)
	return &pb.ListGatewayPoolsResponse{GatewayPools: all, NextPageToken: next, ResourceVersion: version}, err
}

// UpdateGatewayPool implements GatewayPoolService.
func (x *GatewayPools) UpdateGatewayPool(ctx context.Context, r *pb.UpdateGatewayPoolRequest) (*pb.UpdateGatewayPoolResponse, error) {
	changed, err := x.kind.update(ctx, r.GetGatewayPool(), r.GetUpdateMask(), r.GetDryRun())
	return &pb.UpdateGatewayPoolResponse{GatewayPool: changed}, err
}

// DeleteGatewayPool implements GatewayPoolService.
func (x *GatewayPools) DeleteGatewayPool(ctx context.Context, r *pb.DeleteGatewayPoolRequest) (*pb.DeleteGatewayPoolResponse, error) {
	gone, err := x.kind.delete(ctx, r.GetName(), r.GetOptions(), r.GetDryRun())
	return &pb.DeleteGatewayPoolResponse{GatewayPool: gone}, err
}

// WatchGatewayPools implements GatewayPoolService.
func (x *GatewayPools) WatchGatewayPools(r *pb.WatchGatewayPoolsRequest, stream pb.GatewayPoolService_WatchGatewayPoolsServer) error {
	return watch(x.kind, stream, r.GetOptions(), func(t pb.ChangeType, o *pb.GatewayPool, v int64) *pb.WatchGatewayPoolsResponse {
		return &pb.WatchGatewayPoolsResponse{Type: t, GatewayPool: o, ResourceVersion: v}
	})
}

func readGatewayPool(m *pb.GatewayPool) *model.GatewayPool {
	return &model.GatewayPool{Meta: readMeta(m.GetMeta()), Spec: model.GatewayPoolSpec{
		Fabrics: m.GetSpec().GetFabrics(), MaxSessionsPerGateway: m.GetSpec().GetMaxSessionsPerGateway(),
	}}
}

func showGatewayPool(p *model.GatewayPool) *pb.GatewayPool {
	return &pb.GatewayPool{
		Meta:   showMeta(&p.Meta),
		Spec:   &pb.GatewayPoolSpec{Fabrics: p.Spec.Fabrics, MaxSessionsPerGateway: p.Spec.MaxSessionsPerGateway},
		Status: &pb.GatewayPoolStatus{Conditions: showConditions(p.Status.Conditions)},
	}
}
