package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// CreateSnapshot implements csi.ControllerServer.
func (s *Service) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	name, err := objectFor(r.GetName())
	if err != nil {
		return nil, err
	}
	if r.GetSourceVolumeId() == "" {
		return nil, invalid("source volume id is missing")
	}
	for key := range r.GetParameters() {
		return nil, invalid("unknown parameter %q: a VolumeSnapshotClass has none", key)
	}
	done, err := s.busy.Begin("snapshot " + name)
	if err != nil {
		return nil, err
	}
	defer done()
	got, err := s.snapshots.GetSnapshot(ctx, &pb.GetSnapshotRequest{Name: name})
	switch {
	case absent(err):
		if _, err := s.volume(ctx, r.GetSourceVolumeId()); err != nil {
			return nil, err
		}
		_, err = s.snapshots.CreateSnapshot(ctx, &pb.CreateSnapshotRequest{Snapshot: &pb.Snapshot{
			Meta: &pb.ObjectMeta{Name: name, Labels: map[string]string{labelMadeBy: madeBy, labelName: r.GetName()}},
			Spec: &pb.SnapshotSpec{Volume: r.GetSourceVolumeId()},
		}})
		if err != nil {
			return nil, clientError(err)
		}
	case err != nil:
		return nil, clientError(err)
	case got.GetSnapshot().GetSpec().GetVolume() != r.GetSourceVolumeId():
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s is there, of volume %s", name,
			got.GetSnapshot().GetSpec().GetVolume())
	case got.GetSnapshot().GetMeta().GetDeleteTime() != nil:
		return nil, status.Errorf(codes.Aborted, "snapshot %s is being deleted; try again", name)
	}
	snapshot, err := s.taken(ctx, name)
	return &csi.CreateSnapshotResponse{Snapshot: snapshot}, err
}

// taken waits until a snapshot is taken. If the pool does not support snapshots, it fails at once.
func (s *Service) taken(ctx context.Context, name string) (*csi.Snapshot, error) {
	var snapshot *pb.Snapshot
	err := wait(ctx, func(ctx context.Context) (string, error) {
		got, err := s.snapshots.GetSnapshot(ctx, &pb.GetSnapshotRequest{Name: name})
		if err != nil {
			return "", err
		}
		if snapshot = got.GetSnapshot(); snapshot.GetStatus().GetReady() {
			return "", nil
		}
		return "snapshot " + name + ": " + problem(snapshot.GetStatus().GetConditions()), nil
	})
	if err != nil {
		return nil, err
	}
	return show(snapshot), nil
}

func show(snapshot *pb.Snapshot) *csi.Snapshot {
	taken := snapshot.GetStatus().GetTakenTime()
	if taken == nil {
		taken = snapshot.GetMeta().GetCreateTime()
	}
	return &csi.Snapshot{SnapshotId: snapshot.GetMeta().GetName(), SourceVolumeId: snapshot.GetSpec().GetVolume(),
		SizeBytes: snapshot.GetStatus().GetSizeBytes(), CreationTime: taken, ReadyToUse: snapshot.GetStatus().GetReady()}
}

// DeleteSnapshot implements csi.ControllerServer.
func (s *Service) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	name := r.GetSnapshotId()
	if name == "" {
		return nil, invalid("snapshot id is missing")
	}
	gone := &csi.DeleteSnapshotResponse{}
	if !objectName.MatchString(name) {
		return gone, nil
	}
	got, err := s.snapshots.GetSnapshot(ctx, &pb.GetSnapshotRequest{Name: name})
	if absent(err) {
		return gone, nil
	}
	if err != nil {
		return nil, clientError(err)
	}
	meta := got.GetSnapshot().GetMeta()
	if meta.GetLabels()[labelMadeBy] != madeBy {
		return nil, precondition("snapshot %s was not made by %s: delete it by `sluicectl snapshot delete` or its Snapshot", name, madeBy)
	}
	_, err = s.snapshots.DeleteSnapshot(ctx, &pb.DeleteSnapshotRequest{Name: name, Options: &pb.DeleteOptions{Uid: meta.GetUid()}})
	if err != nil && !absent(err) {
		return nil, clientError(err)
	}
	return gone, wait(ctx, func(ctx context.Context) (string, error) {
		got, err := s.snapshots.GetSnapshot(ctx, &pb.GetSnapshotRequest{Name: name})
		if absent(err) || err == nil && got.GetSnapshot().GetMeta().GetUid() != meta.GetUid() {
			return "", nil
		}
		return "snapshot " + name + " is being deleted", err
	})
}

// GetSnapshot implements csi.ControllerServer.
func (s *Service) GetSnapshot(ctx context.Context, r *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if r.GetSnapshotId() == "" {
		return nil, invalid("snapshot id is missing")
	}
	got, err := s.snapshots.GetSnapshot(ctx, &pb.GetSnapshotRequest{Name: r.GetSnapshotId()})
	if err != nil {
		return nil, sourceless(r.GetSnapshotId(), err)
	}
	return &csi.GetSnapshotResponse{Snapshot: show(got.GetSnapshot())}, nil
}

// ListSnapshots implements csi.ControllerServer: one snapshot, those of a volume, or all that this driver made.
func (s *Service) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	response := &csi.ListSnapshotsResponse{}
	add := func(snapshot *pb.Snapshot) {
		if of := r.GetSourceVolumeId(); of == "" || of == snapshot.GetSpec().GetVolume() {
			response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: show(snapshot)})
		}
	}
	if id := r.GetSnapshotId(); id != "" {
		got, err := s.snapshots.GetSnapshot(ctx, &pb.GetSnapshotRequest{Name: id})
		if err == nil {
			add(got.GetSnapshot())
		} else if err = sourceless(id, err); !absent(err) {
			return nil, err
		}
		return response, nil
	}
	options, err := page(r.GetMaxEntries(), r.GetStartingToken())
	if err != nil {
		return nil, err
	}
	for list, err := range client.Pages(ctx, s.snapshots.ListSnapshots, &pb.ListSnapshotsRequest{Options: options}) {
		if err != nil {
			return nil, listed(err, r.GetStartingToken())
		}
		for _, snapshot := range list.GetSnapshots() {
			add(snapshot)
		}
		if r.GetMaxEntries() > 0 { // one page, and the token of the next one
			response.NextToken = list.GetNextPageToken()
			break
		}
	}
	return response, nil
}
