package controller

import (
	"context"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Sizes in bytes.
const (
	mebibyte    = 1 << 20
	gibibyte    = 1 << 30
	minimumSize = mebibyte
	maximumSize = 64 << 40
)

// sizeFor returns the smallest size of whole mebibytes in a range; a gibibyte if no range is given. Sizes are in bytes.
func sizeFor(asked *csi.CapacityRange, source int64) (int64, error) {
	required, limit := asked.GetRequiredBytes(), asked.GetLimitBytes()
	if required < 0 || limit < 0 || limit > 0 && required > limit {
		return 0, invalid("capacity range from %d to %d bytes is none", required, limit)
	}
	size := required
	if size == 0 {
		size = max(source, gibibyte)
		if limit > 0 {
			size = min(size, limit/mebibyte*mebibyte)
		}
	}
	size = max((size+mebibyte-1)/mebibyte*mebibyte, minimumSize)
	switch {
	case size > maximumSize:
		return 0, status.Errorf(codes.OutOfRange, "%d bytes are more than a volume can have, %d", size, int64(maximumSize))
	case limit > 0 && size > limit:
		return 0, status.Errorf(codes.OutOfRange, "no multiple of 1 MiB lies between %d and %d bytes", required, limit)
	case size < source:
		return 0, status.Errorf(codes.OutOfRange, "%d bytes are less than the source's %d", size, source)
	}
	return size, nil
}

// CreateVolume implements csi.ControllerServer.
func (s *Service) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	name, err := objectFor(r.GetName())
	if err != nil {
		return nil, err
	}
	if err := checkCapabilities(r.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	done, err := s.busy.Begin(name)
	if err != nil {
		return nil, err
	}
	defer done()
	wanted, err := s.wantedVolume(ctx, name, r)
	if err != nil {
		return nil, err
	}
	volume, err := s.createOrReuse(ctx, wanted, r)
	if err != nil {
		return nil, err
	}
	if err := s.awaitVolume(ctx, name); err != nil {
		return nil, err
	}
	made, err := s.toCSI(ctx, volume)
	if err != nil {
		return nil, err
	}
	made.ContentSource = r.GetVolumeContentSource()
	return &csi.CreateVolumeResponse{Volume: made}, nil
}

// wantedVolume returns the volume of this name that a request describes.
func (s *Service) wantedVolume(ctx context.Context, name string, r *csi.CreateVolumeRequest) (*pb.Volume, error) {
	p, err := readParameters(r.GetParameters())
	if err != nil {
		return nil, err
	}
	source, size, pool, err := s.source(ctx, r.GetVolumeContentSource())
	if err != nil {
		return nil, err
	}
	if p.pool == "" {
		p.pool = pool // a copy stays in the pool of its source
	}
	if err := s.complete(ctx, &p); err != nil {
		return nil, err
	}
	if err := s.holdsCopies(ctx, p, pool); err != nil {
		return nil, err
	}
	bytes, err := sizeFor(r.GetCapacityRange(), size)
	if err != nil {
		return nil, err
	}
	if err := s.choosePool(ctx, &p, name, bytes, r.GetAccessibilityRequirements()); err != nil {
		return nil, err
	}
	if err := s.reachable(ctx, p, r.GetAccessibilityRequirements()); err != nil {
		return nil, err
	}
	qos, err := changeQos(nil, r.GetMutableParameters())
	if err != nil {
		return nil, err
	}
	return &pb.Volume{Meta: &pb.ObjectMeta{Name: name, Labels: p.labels(r.GetName())}, Spec: &pb.VolumeSpec{
		Pool: p.pool, SizeBytes: bytes, BlockSize: p.blockSize, WriteCache: p.writeCache, Qos: qos, Source: source,
		ReclaimPolicy: p.reclaim,
	}}, nil
}

// holdsCopies refuses a copy of a source in a pool in which the class has no volumes: a copy stays in its source's pool.
func (s *Service) holdsCopies(ctx context.Context, p parameters, source string) error {
	if source == "" {
		return nil
	}
	if p.poolSelector == nil {
		if source != p.pool {
			return invalid("the source is in pool %s, and the class's is %s: a copy stays in its source's pool", source, p.pool)
		}
		return nil
	}
	p.pool = source
	pools, err := s.poolsOf(ctx, p)
	if err == nil && len(pools) == 0 {
		return invalid("the source is in pool %s, which lacks the labels of the class's parameter poolSelector, %s: a copy stays in its "+
			"source's pool", source, selectorText(p.poolSelector))
	}
	return err
}

// source returns the source of a copy, with its size and pool.
func (s *Service) source(ctx context.Context, from *csi.VolumeContentSource) (*pb.VolumeSource, int64, string, error) {
	switch {
	case from.GetSnapshot() != nil:
		id := from.GetSnapshot().GetSnapshotId()
		got, err := s.snapshots.GetSnapshot(ctx, &pb.GetSnapshotRequest{Name: id})
		if err != nil {
			return nil, 0, "", sourceError("snapshot", id, err)
		}
		origin, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: got.GetSnapshot().GetSpec().GetVolume()})
		if err != nil {
			return nil, 0, "", clientError(err)
		}
		return &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: id}}, got.GetSnapshot().GetStatus().GetSizeBytes(),
			origin.GetVolume().GetSpec().GetPool(), nil
	case from.GetVolume() != nil:
		id := from.GetVolume().GetVolumeId()
		got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: id})
		if err != nil {
			return nil, 0, "", sourceError("volume", id, err)
		}
		return &pb.VolumeSource{Source: &pb.VolumeSource_Volume{Volume: id}}, got.GetVolume().GetSpec().GetSizeBytes(),
			got.GetVolume().GetSpec().GetPool(), nil
	case from != nil:
		return nil, 0, "", invalid("the content source is neither a snapshot nor a volume")
	}
	return nil, 0, "", nil
}

// sourceError reports that a source is missing, even for an id that is no valid name.
func sourceError(kind, id string, err error) error {
	if code := status.Code(err); code == codes.NotFound || code == codes.InvalidArgument {
		return status.Errorf(codes.NotFound, "there is no %s %q to copy", kind, id)
	}
	return clientError(err)
}

// createOrReuse creates the volume, or returns the one of an earlier call, which must equal the requested one.
func (s *Service) createOrReuse(ctx context.Context, wanted *pb.Volume, r *csi.CreateVolumeRequest) (*pb.Volume, error) {
	name := wanted.GetMeta().GetName()
	got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: name})
	if absent(err) {
		created, err := s.volumes.CreateVolume(ctx, &pb.CreateVolumeRequest{Volume: wanted})
		return created.GetVolume(), clientError(err)
	}
	if err != nil {
		return nil, clientError(err)
	}
	existing := got.GetVolume()
	if existing.GetMeta().GetDeleteTime() != nil {
		return nil, status.Errorf(codes.Aborted, "volume %s is being deleted; try again", name)
	}
	if why := differs(existing, wanted, r.GetCapacityRange()); why != "" {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s is there, but %s", name, why)
	}
	return existing, nil
}

func differs(existing, wanted *pb.Volume, asked *csi.CapacityRange) string {
	size, limit := existing.GetSpec().GetSizeBytes(), asked.GetLimitBytes()
	labels := maps.Clone(existing.GetMeta().GetLabels())
	for label := range labels {
		if _, ours := wanted.GetMeta().GetLabels()[label]; !ours {
			delete(labels, label) // the nodes to which it is published, and labels that users added
		}
	}
	switch {
	case labels[labelMadeBy] != madeBy:
		return "was not made by " + madeBy
	case size < asked.GetRequiredBytes() || limit > 0 && size > limit:
		return "its size is another"
	case existing.GetSpec().GetPool() != wanted.GetSpec().GetPool():
		return "it is in pool " + existing.GetSpec().GetPool()
	case !proto.Equal(existing.GetSpec().GetSource(), wanted.GetSpec().GetSource()):
		return "its content comes from elsewhere"
	case !maps.Equal(labels, wanted.GetMeta().GetLabels()):
		return "its class has other parameters"
	}
	return ""
}

// awaitVolume waits until a volume's data is complete, because a copy takes time.
func (s *Service) awaitVolume(ctx context.Context, name string) error {
	return wait(ctx, func(ctx context.Context) (string, error) {
		got, err := s.volumes.GetVolume(ctx, &pb.GetVolumeRequest{Name: name})
		if err != nil || got.GetVolume().GetStatus().GetCapacityBytes() > 0 {
			return "", err
		}
		return "volume " + name + ": " + problem(got.GetVolume().GetStatus().GetConditions()), nil
	})
}

// problem returns the message of the Ready condition.
func problem(conditions []*pb.Condition) string {
	for _, condition := range conditions {
		if condition.GetType() == "Ready" {
			return condition.GetReason() + ": " + condition.GetMessage()
		}
	}
	return "nothing is known of it yet"
}

// toCSI returns a volume in the form of CSI.
func (s *Service) toCSI(ctx context.Context, volume *pb.Volume) (*csi.Volume, error) {
	topology, err := s.topologyOf(ctx, volume.GetSpec().GetPool(), volume.GetMeta().GetLabels()[labelTopology])
	if err != nil {
		return nil, err
	}
	return &csi.Volume{VolumeId: volume.GetMeta().GetName(), CapacityBytes: volume.GetSpec().GetSizeBytes(),
		AccessibleTopology: topology}, nil
}
