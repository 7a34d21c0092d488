package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Snapshots serves SnapshotService.
type Snapshots struct {
	pb.UnimplementedSnapshotServiceServer
	kind  kind[*model.Snapshot, *pb.Snapshot]
	store *store.Store
}

// NewSnapshots makes the service.
func NewSnapshots(s *store.Store, callers Callers) *Snapshots {
	return &Snapshots{store: s, kind: kind[*model.Snapshot, *pb.Snapshot]{
		objects: s.Snapshots, read: readSnapshot, show: showSnapshot, callers: callers,
	}}
}

// CreateSnapshot implements SnapshotService.
func (x *Snapshots) CreateSnapshot(ctx context.Context, r *pb.CreateSnapshotRequest) (*pb.CreateSnapshotResponse, error) {
	made, err := x.kind.create(ctx, r.GetSnapshot(), r.GetDryRun())
	return &pb.CreateSnapshotResponse{Snapshot: made}, err
}

// GetSnapshot implements SnapshotService.
func (x *Snapshots) GetSnapshot(ctx context.Context, r *pb.GetSnapshotRequest) (*pb.GetSnapshotResponse, error) {
	got, err := x.kind.get(ctx, r.GetName())
	return &pb.GetSnapshotResponse{Snapshot: got}, err
}

// ListSnapshots implements SnapshotService.
func (x *Snapshots) ListSnapshots(ctx context.Context, r *pb.ListSnapshotsRequest) (*pb.ListSnapshotsResponse, error) {
	all, next, version, err := x.kind.list(ctx, r)
	return &pb.ListSnapshotsResponse{Snapshots: all, NextPageToken: next, ResourceVersion: version}, err
}

// UpdateSnapshot implements SnapshotService.
func (x *Snapshots) UpdateSnapshot(ctx context.Context, r *pb.UpdateSnapshotRequest) (*pb.UpdateSnapshotResponse, error) {
	changed, err := x.kind.update(ctx, r.GetSnapshot(), r.GetUpdateMask(), r.GetDryRun())
	return &pb.UpdateSnapshotResponse{Snapshot: changed}, err
}

// DeleteSnapshot implements SnapshotService.
func (x *Snapshots) DeleteSnapshot(ctx context.Context, r *pb.DeleteSnapshotRequest) (*pb.DeleteSnapshotResponse, error) {
	gone, err := x.kind.delete(ctx, r.GetName(), r.GetOptions(), r.GetDryRun())
	return &pb.DeleteSnapshotResponse{Snapshot: gone}, err
}

// RollBackSnapshot implements SnapshotService.
func (x *Snapshots) RollBackSnapshot(ctx context.Context, r *pb.RollBackSnapshotRequest) (*pb.RollBackSnapshotResponse, error) {
	snapshot, err := x.store.RequestRollBack(ctx, r.GetName(), r.GetDryRun())
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.RollBackSnapshotResponse{Snapshot: showSnapshot(snapshot)}, nil
}

// WatchSnapshots implements SnapshotService.
func (x *Snapshots) WatchSnapshots(r *pb.WatchSnapshotsRequest, stream pb.SnapshotService_WatchSnapshotsServer) error {
	return watch(x.kind, stream, r.GetOptions(), func(t pb.ChangeType, o *pb.Snapshot, v int64) *pb.WatchSnapshotsResponse {
		return &pb.WatchSnapshotsResponse{Type: t, Snapshot: o, ResourceVersion: v}
	})
}

func readSnapshot(m *pb.Snapshot) *model.Snapshot {
	return &model.Snapshot{Meta: readMeta(m.GetMeta()), Spec: model.SnapshotSpec{
		Volume: m.GetSpec().GetVolume(), ReclaimPolicy: readReclaimPolicy(m.GetSpec().GetReclaimPolicy()),
	}}
}

func showSnapshot(s *model.Snapshot) *pb.Snapshot {
	shown := &pb.Snapshot{
		Meta: showMeta(&s.Meta),
		Spec: &pb.SnapshotSpec{Volume: s.Spec.Volume, ReclaimPolicy: showReclaimPolicy(s.Spec.ReclaimPolicy)},
		Status: &pb.SnapshotStatus{
			Ready: s.Status.Ready, SizeBytes: s.Status.SizeBytes, Conditions: showConditions(s.Status.Conditions),
		},
	}
	if s.Status.TakenTime != nil {
		shown.Status.TakenTime = showTime(*s.Status.TakenTime)
	}
	return shown
}
