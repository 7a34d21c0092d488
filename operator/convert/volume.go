package convert

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// VolumeSpec returns the specification of a volume. Unset fields have the default of the API.
func VolumeSpec(r *v1alpha1.Volume) (*pb.VolumeSpec, error) {
	size, whole := r.Spec.Size.AsInt64()
	if !whole {
		return nil, fmt.Errorf("spec.size is %s; whole bytes are possible, as in 10Gi", r.Spec.Size.String())
	}
	spec := &pb.VolumeSpec{Pool: r.Spec.Pool, SizeBytes: size, BlockSize: r.Spec.BlockSize, WriteCache: pb.WriteCache_WRITE_CACHE_DISABLED}
	var err error
	if r.Spec.WriteCache != "" {
		if spec.WriteCache, err = valueOf[pb.WriteCache]("spec.writeCache", string(r.Spec.WriteCache)); err != nil {
			return nil, err
		}
	}
	if spec.ReclaimPolicy, err = valueOf[pb.ReclaimPolicy]("spec.reclaimPolicy", string(r.Spec.ReclaimPolicy)); err != nil {
		return nil, err
	}
	if q := r.Spec.Qos; q != nil && *q != (v1alpha1.Qos{}) {
		spec.Qos = &pb.Qos{Iops: q.IOPS, IopsBurst: q.IOPSBurst, BytesPerSecond: q.BytesPerSecond, BytesBurst: q.BytesBurst}
	}
	spec.Source, err = volumeSource(r)
	return spec, err
}

func volumeSource(r *v1alpha1.Volume) (*pb.VolumeSource, error) {
	s := r.Spec.Source
	if s == nil {
		return nil, nil
	}
	var sources []*pb.VolumeSource
	if s.Snapshot != "" {
		sources = append(sources, &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: NameIn(r.Namespace, s.Snapshot)}})
	}
	if s.Volume != "" {
		sources = append(sources, &pb.VolumeSource{Source: &pb.VolumeSource_Volume{Volume: NameIn(r.Namespace, s.Volume)}})
	}
	if s.Image != "" {
		sources = append(sources, &pb.VolumeSource{Source: &pb.VolumeSource_Image{Image: s.Image}})
	}
	if len(sources) != 1 {
		return nil, fmt.Errorf("spec.source names %d of snapshot, volume and image; a source is exactly one of them", len(sources))
	}
	return sources[0], nil
}

// ShowVolume copies the status of a volume.
func ShowVolume(r *v1alpha1.Volume, have *pb.Volume) {
	s := have.GetStatus()
	r.Status.NAA, r.Status.SerialNumber = s.GetNaa(), s.GetSerialNumber()
	r.Status.Ownership = Word(s.GetOwnership())
	r.Status.Owner, r.Status.OwnerGateway, r.Status.Epoch = s.GetOwner(), int64(s.GetOwnerGateway()), int64(s.GetEpoch())
	r.Status.RollingBack = s.GetRollingBack()
	r.Status.Capacity, r.Status.AllocatedBytes = nil, nil
	if s.GetCapacityBytes() > 0 {
		r.Status.Capacity = resource.NewQuantity(s.GetCapacityBytes(), resource.BinarySI)
	}
	if allocated := s.GetAllocatedBytes(); allocated >= 0 {
		r.Status.AllocatedBytes = &allocated
	}
}

func volumeOf(have *pb.Volume, at resourceKey) *v1alpha1.Volume {
	spec := have.GetSpec()
	r := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{
		Pool: spec.GetPool(), Size: *resource.NewQuantity(spec.GetSizeBytes(), resource.BinarySI), BlockSize: spec.GetBlockSize(),
		WriteCache: v1alpha1.WriteCache(Word(spec.GetWriteCache())), ReclaimPolicy: v1alpha1.ReclaimPolicy(Word(spec.GetReclaimPolicy())),
	}}
	if q := spec.GetQos(); q != nil {
		r.Spec.Qos = &v1alpha1.Qos{IOPS: q.GetIops(), IOPSBurst: q.GetIopsBurst(), BytesPerSecond: q.GetBytesPerSecond(),
			BytesBurst: q.GetBytesBurst()}
	}
	if s := spec.GetSource(); s != nil {
		r.Spec.Source = &v1alpha1.VolumeSource{Snapshot: at.relative(s.GetSnapshot()), Volume: at.relative(s.GetVolume()), Image: s.GetImage()}
	}
	ShowVolume(r, have)
	return r
}
