package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Volumes serves VolumeService.
type Volumes struct {
	pb.UnimplementedVolumeServiceServer
	kind    kind[*model.Volume, *pb.Volume]
	store   *store.Store
	callers Callers
}

// NewVolumes makes the service.
func NewVolumes(s *store.Store, counts *Counts, callers Callers) *Volumes {
	return &Volumes{
		kind: kind[*model.Volume, *pb.Volume]{objects: s.Volumes, read: readVolume, show: showVolume, fill: counts.volumes, callers: callers,
			shared: []string{"spec.size_bytes", "spec.qos"}},
		store: s, callers: callers,
	}
}

// CreateVolume implements VolumeService.
func (v *Volumes) CreateVolume(ctx context.Context, r *pb.CreateVolumeRequest) (*pb.CreateVolumeResponse, error) {
	if err := v.mayAdopt(ctx, r.GetVolume().GetSpec()); err != nil {
		return nil, err
	}
	volume, err := v.kind.create(ctx, r.GetVolume(), r.GetDryRun())
	return &pb.CreateVolumeResponse{Volume: volume}, err
}

// GetVolume implements VolumeService.
func (v *Volumes) GetVolume(ctx context.Context, r *pb.GetVolumeRequest) (*pb.GetVolumeResponse, error) {
	volume, err := v.kind.get(ctx, r.GetName())
	return &pb.GetVolumeResponse{Volume: volume}, err
}

// ListVolumes implements VolumeService.
func (v *Volumes) ListVolumes(ctx context.Context, r *pb.ListVolumesRequest) (*pb.ListVolumesResponse, error) {
	volumes, next, version, err := v.kind.list(ctx, r)
	return &pb.ListVolumesResponse{Volumes: volumes, NextPageToken: next, ResourceVersion: version}, err
}

// UpdateVolume implements VolumeService.
func (v *Volumes) UpdateVolume(ctx context.Context, r *pb.UpdateVolumeRequest) (*pb.UpdateVolumeResponse, error) {
	volume, err := v.kind.update(ctx, r.GetVolume(), r.GetUpdateMask(), r.GetDryRun())
	return &pb.UpdateVolumeResponse{Volume: volume}, err
}

// DeleteVolume implements VolumeService.
func (v *Volumes) DeleteVolume(ctx context.Context, r *pb.DeleteVolumeRequest) (*pb.DeleteVolumeResponse, error) {
	volume, err := v.kind.delete(ctx, r.GetName(), r.GetOptions(), r.GetDryRun())
	return &pb.DeleteVolumeResponse{Volume: volume}, err
}

// WatchVolumes implements VolumeService.
func (v *Volumes) WatchVolumes(r *pb.WatchVolumesRequest, stream pb.VolumeService_WatchVolumesServer) error {
	return watch(v.kind, stream, r.GetOptions(), func(t pb.ChangeType, x *pb.Volume, version int64) *pb.WatchVolumesResponse {
		return &pb.WatchVolumesResponse{Type: t, Volume: x, ResourceVersion: version}
	})
}

// MoveVolume implements VolumeService.
func (v *Volumes) MoveVolume(ctx context.Context, r *pb.MoveVolumeRequest) (*pb.MoveVolumeResponse, error) {
	volume, err := v.store.RequestMove(ctx, r.GetName(), r.GetGateway(), r.GetDryRun())
	if err != nil {
		return nil, statusOf(err)
	}
	message, err := v.kind.filled(ctx, volume)
	return &pb.MoveVolumeResponse{Volume: message}, err
}

func readVolume(m *pb.Volume) *model.Volume {
	spec := m.GetSpec()
	return &model.Volume{Meta: readMeta(m.GetMeta()), Spec: model.VolumeSpec{
		Pool: spec.GetPool(), SizeBytes: spec.GetSizeBytes(), BlockSize: spec.GetBlockSize(),
		WriteCache: spec.GetWriteCache() == pb.WriteCache_WRITE_CACHE_ENABLED,
		QoS: model.QoS{
			IOPS: spec.GetQos().GetIops(), IOPSBurst: spec.GetQos().GetIopsBurst(),
			BytesPerSecond: spec.GetQos().GetBytesPerSecond(), BytesBurst: spec.GetQos().GetBytesBurst(),
		},
		Source: model.VolumeSource{Snapshot: spec.GetSource().GetSnapshot(), Volume: spec.GetSource().GetVolume(),
			Image: spec.GetSource().GetImage()},
		ReclaimPolicy: readReclaimPolicy(spec.GetReclaimPolicy()),
	}}
}

func showVolume(v *model.Volume) *pb.Volume {
	shown := &pb.Volume{
		Meta: showMeta(&v.Meta),
		Spec: &pb.VolumeSpec{
			Pool: v.Spec.Pool, SizeBytes: v.Spec.SizeBytes, BlockSize: v.Spec.BlockSize,
			WriteCache: pb.WriteCache_WRITE_CACHE_DISABLED, ReclaimPolicy: showReclaimPolicy(v.Spec.ReclaimPolicy),
		},
		Status: &pb.VolumeStatus{
			Naa: v.Status.Identity.NAA, SerialNumber: v.Status.Identity.SerialNumber,
			Ownership: ownershipStates[v.Status.Ownership.State], OwnerGateway: v.Status.Ownership.Owner.Number,
			Epoch: v.Status.Ownership.Epoch, CapacityBytes: v.Status.CapacityBytes,
			AllocatedBytes: v.Status.AllocatedBytes, Conditions: showConditions(v.Status.Conditions),
			RollingBack: v.Status.RollBack != nil, RequestedMove: showRequestedMove(&v.Status),
		},
	}
	if v.Spec.WriteCache {
		shown.Spec.WriteCache = pb.WriteCache_WRITE_CACHE_ENABLED
	}
	if q := v.Spec.QoS; q != (model.QoS{}) {
		shown.Spec.Qos = &pb.Qos{
			Iops: q.IOPS, IopsBurst: q.IOPSBurst, BytesPerSecond: q.BytesPerSecond, BytesBurst: q.BytesBurst,
		}
	}
	if s := v.Spec.Source; s.Snapshot != "" {
		shown.Spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: s.Snapshot}}
	} else if s.Volume != "" {
		shown.Spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Volume{Volume: s.Volume}}
	} else if s.Image != "" {
		shown.Spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Image{Image: s.Image}}
	}
	return shown
}

var ownershipStates = map[model.OwnershipState]pb.OwnershipState{
	model.Unowned:   pb.OwnershipState_OWNERSHIP_STATE_UNOWNED,
	model.Acquiring: pb.OwnershipState_OWNERSHIP_STATE_ACQUIRING,
	model.Opening:   pb.OwnershipState_OWNERSHIP_STATE_OPENING,
	model.Owned:     pb.OwnershipState_OWNERSHIP_STATE_OWNED,
	model.Moving:    pb.OwnershipState_OWNERSHIP_STATE_MOVING,
	model.Fencing:   pb.OwnershipState_OWNERSHIP_STATE_FENCING,
	model.Orphaned:  pb.OwnershipState_OWNERSHIP_STATE_ORPHANED,
}

// showRequestedMove returns the last requested move: the request that the leader has not begun, else the move in progress.
func showRequestedMove(s *model.VolumeStatus) *pb.RequestedMove {
	switch {
	case s.MoveRequest != nil:
		return &pb.RequestedMove{Gateway: s.MoveRequest.Gateway, RequestTime: showTime(s.MoveRequest.Since)}
	case s.Move != nil:
		return &pb.RequestedMove{Gateway: s.Move.To, RequestTime: showTime(s.MovedAt)}
	}
	return nil
}

func readReclaimPolicy(p pb.ReclaimPolicy) model.ReclaimPolicy {
	switch p {
	case pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN:
		return model.ReclaimRetain
	case pb.ReclaimPolicy_RECLAIM_POLICY_TRASH:
		return model.ReclaimTrash
	}
	return model.ReclaimDelete
}

func showReclaimPolicy(p model.ReclaimPolicy) pb.ReclaimPolicy {
	switch p {
	case model.ReclaimRetain:
		return pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN
	case model.ReclaimTrash:
		return pb.ReclaimPolicy_RECLAIM_POLICY_TRASH
	}
	return pb.ReclaimPolicy_RECLAIM_POLICY_DELETE
}
