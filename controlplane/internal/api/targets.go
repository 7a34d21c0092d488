package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Targets serves TargetService.
type Targets struct {
	pb.UnimplementedTargetServiceServer
	kind kind[*model.Target, *pb.Target]
}

// NewTargets makes the service.
func NewTargets(s *store.Store, counts *Counts, callers Callers) *Targets {
	return &Targets{kind: kind[*model.Target, *pb.Target]{
		objects: s.Targets, read: readTarget, show: showTarget, fill: counts.targets,
		callers: callers, shared: []string{"spec.luns", "spec.hosts"},
	}}
}

// CreateTarget implements TargetService.
func (x *Targets) CreateTarget(ctx context.Context, r *pb.CreateTargetRequest) (*pb.CreateTargetResponse, error) {
	made, err := x.kind.create(ctx, r.GetTarget(), r.GetDryRun())
	return &pb.CreateTargetResponse{Target: made}, err
}

// GetTarget implements TargetService.
func (x *Targets) GetTarget(ctx context.Context, r *pb.GetTargetRequest) (*pb.GetTargetResponse, error) {
	got, err := x.kind.get(ctx, r.GetName())
	return &pb.GetTargetResponse{Target: got}, err
}

// ListTargets implements TargetService.
func (x *Targets) ListTargets(ctx context.Context, r *pb.ListTargetsRequest) (*pb.ListTargetsResponse, error) {
	all, next, version, err := x.kind.list(ctx, r)
	return &pb.ListTargetsResponse{Targets: all, NextPageToken: next, ResourceVersion: version}, err
}

// UpdateTarget implements TargetService.
func (x *Targets) UpdateTarget(ctx context.Context, r *pb.UpdateTargetRequest) (*pb.UpdateTargetResponse, error) {
	changed, err := x.kind.update(ctx, r.GetTarget(), r.GetUpdateMask(), r.GetDryRun())
	return &pb.UpdateTargetResponse{Target: changed}, err
}

// DeleteTarget implements TargetService.
func (x *Targets) DeleteTarget(ctx context.Context, r *pb.DeleteTargetRequest) (*pb.DeleteTargetResponse, error) {
	gone, err := x.kind.delete(ctx, r.GetName(), r.GetOptions(), r.GetDryRun())
	return &pb.DeleteTargetResponse{Target: gone}, err
}

// WatchTargets implements TargetService.
func (x *Targets) WatchTargets(r *pb.WatchTargetsRequest, stream pb.TargetService_WatchTargetsServer) error {
	return watch(x.kind, stream, r.GetOptions(), func(t pb.ChangeType, o *pb.Target, v int64) *pb.WatchTargetsResponse {
		return &pb.WatchTargetsResponse{Type: t, Target: o, ResourceVersion: v}
	})
}

func readTarget(m *pb.Target) *model.Target {
	spec := m.GetSpec()
	target := &model.Target{Meta: readMeta(m.GetMeta()), Spec: model.TargetSpec{
		IQN: spec.GetIqn(), GatewayPool: spec.GetGatewayPool(), Paths: spec.GetPaths(), Hosts: spec.GetHosts(),
	}}
	for _, lun := range spec.GetLuns() {
		target.Spec.Luns = append(target.Spec.Luns,
			model.TargetLun{ID: lun.GetId(), Volume: lun.GetVolume(), ReadOnly: lun.GetReadOnly()})
	}
	return target
}

func showTarget(t *model.Target) *pb.Target {
	shown := &pb.Target{
		Meta: showMeta(&t.Meta),
		Spec: &pb.TargetSpec{
			Iqn: t.Spec.IQN, GatewayPool: t.Spec.GatewayPool, Paths: t.Spec.Paths, Hosts: t.Spec.Hosts,
		},
		Status: &pb.TargetStatus{Conditions: showConditions(t.Status.Conditions)},
	}
	for _, lun := range t.Spec.Luns {
		shown.Spec.Luns = append(shown.Spec.Luns,
			&pb.TargetLun{Id: lun.ID, Volume: lun.Volume, ReadOnly: lun.ReadOnly})
	}
	for _, number := range t.Status.PathSet {
		shown.Status.Paths = append(shown.Status.Paths, showPath(t, number))
	}
	return shown
}

func showPath(t *model.Target, gateway uint32) *pb.TargetPath {
	path := &pb.TargetPath{TargetPortGroup: gateway, Applied: t.AppliedBy(gateway)}
	for _, port := range t.Status.Ports {
		if port.Gateway == gateway {
			path.Ports = append(path.Ports, &pb.TargetPort{
				PortalGroupTag: port.PortalGroupTag, RelativeTargetPortId: port.RelativePortID,
			})
		}
	}
	return path
}
