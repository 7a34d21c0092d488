package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Fabrics serves FabricService.
type Fabrics struct {
	pb.UnimplementedFabricServiceServer
	kind kind[*model.Fabric, *pb.Fabric]
}

// NewFabrics makes the service.
func NewFabrics(s *store.Store, counts *Counts) *Fabrics {
	return &Fabrics{kind: kind[*model.Fabric, *pb.Fabric]{
		objects: s.Fabrics, read: readFabric, show: showFabric, fill: counts.fabrics,
	}}
}

// CreateFabric implements FabricService.
func (x *Fabrics) CreateFabric(ctx context.Context, r *pb.CreateFabricRequest) (*pb.CreateFabricResponse, error) {
	made, err := x.kind.create(ctx, r.GetFabric(), r.GetDryRun())
	return &pb.CreateFabricResponse{Fabric: made}, err
}

// GetFabric implements FabricService.
func (x *Fabrics) GetFabric(ctx context.Context, r *pb.GetFabricRequest) (*pb.GetFabricResponse, error) {
	got, err := x.kind.get(ctx, r.GetName())
	return &pb.GetFabricResponse{Fabric: got}, err
}

// ListFabrics implements FabricService.
func (x *Fabrics) ListFabrics(ctx context.Context, r *pb.ListFabricsRequest) (*pb.ListFabricsResponse, error) {
	all, next, version, err := x.kind.list(ctx, r)
	return &pb.ListFabricsResponse{Fabrics: all, NextPageToken: next, ResourceVersion: version}, err
}

// UpdateFabric implements FabricService.
func (x *Fabrics) UpdateFabric(ctx context.Context, r *pb.UpdateFabricRequest) (*pb.UpdateFabricResponse, error) {
	changed, err := x.kind.update(ctx, r.GetFabric(), r.GetUpdateMask(), r.GetDryRun())
	return &pb.UpdateFabricResponse{Fabric: changed}, err
}

// DeleteFabric implements FabricService.
func (x *Fabrics) DeleteFabric(ctx context.Context, r *pb.DeleteFabricRequest) (*pb.DeleteFabricResponse, error) {
	gone, err := x.kind.delete(ctx, r.GetName(), r.GetOptions(), r.GetDryRun())
	return &pb.DeleteFabricResponse{Fabric: gone}, err
}

// WatchFabrics implements FabricService.
func (x *Fabrics) WatchFabrics(r *pb.WatchFabricsRequest, stream pb.FabricService_WatchFabricsServer) error {
	return watch(x.kind, stream, r.GetOptions(), func(t pb.ChangeType, o *pb.Fabric, v int64) *pb.WatchFabricsResponse {
		return &pb.WatchFabricsResponse{Type: t, Fabric: o, ResourceVersion: v}
	})
}

func readFabric(m *pb.Fabric) *model.Fabric {
	spec := m.GetSpec()
	fabric := &model.Fabric{Meta: readMeta(m.GetMeta()),
		Spec: model.FabricSpec{Subnets: spec.GetSubnets(), Switches: spec.GetSwitches()}}
	for _, link := range spec.GetLinks() {
		fabric.Spec.Links = append(fabric.Spec.Links,
			model.FabricLink{A: link.GetA(), B: link.GetB(), Cost: link.GetCost()})
	}
	return fabric
}

func showFabric(f *model.Fabric) *pb.Fabric {
	shown := &pb.Fabric{
		Meta:   showMeta(&f.Meta),
		Spec:   &pb.FabricSpec{Subnets: f.Spec.Subnets, Switches: f.Spec.Switches},
		Status: &pb.FabricStatus{Conditions: showConditions(f.Status.Conditions)},
	}
	for _, link := range f.Spec.Links {
		shown.Spec.Links = append(shown.Spec.Links, &pb.FabricLink{A: link.A, B: link.B, Cost: link.Cost})
	}
	return shown
}
