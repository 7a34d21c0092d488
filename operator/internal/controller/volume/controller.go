// Package volume is the controller of Volumes.
package volume

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/controlplane"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=volumes,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=volumes/status;volumes/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection grpc.ClientConnInterface) error {
	volumes := &volumes{client: mgr.GetClient()}
	return mirror.Setup(mgr, mirror.Kind[*v1alpha1.Volume, *pb.Volume]{
		Noun: controlplane.Volumes(connection),
		Want: volumes.want, Show: show, Judged: true, HoldsData: true,
	}, nil)
}

type volumes struct{ client client.Client }

func (v *volumes) want(ctx context.Context, r *v1alpha1.Volume, _ *mirror.SecretReader) (*pb.Volume, error) {
	if err := v.cycle(ctx, r); err != nil {
		return nil, err
	}
	spec := &pb.VolumeSpec{
		Pool: r.Spec.Pool, SizeBytes: r.Spec.Size.Value(), BlockSize: r.Spec.BlockSize,
		WriteCache: pb.WriteCache_WRITE_CACHE_DISABLED, ReclaimPolicy: reclaimPolicies[r.Spec.ReclaimPolicy],
	}
	if r.Spec.WriteCache == v1alpha1.WriteCacheEnabled {
		spec.WriteCache = pb.WriteCache_WRITE_CACHE_ENABLED
	}
	if q := r.Spec.Qos; q != nil && *q != (v1alpha1.Qos{}) {
		spec.Qos = &pb.Qos{Iops: q.IOPS, IopsBurst: q.IOPSBurst, BytesPerSecond: q.BytesPerSecond, BytesBurst: q.BytesBurst}
	}
	switch s := r.Spec.Source; {
	case s == nil:
	case s.Snapshot != "":
		spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Snapshot{Snapshot: mirror.NameIn(r.Namespace, s.Snapshot)}}
	case s.Volume != "":
		spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Volume{Volume: mirror.NameIn(r.Namespace, s.Volume)}}
	default:
		spec.Source = &pb.VolumeSource{Source: &pb.VolumeSource_Image{Image: s.Image}}
	}
	return &pb.Volume{Spec: spec}, nil
}

var reclaimPolicies = map[v1alpha1.ReclaimPolicy]pb.ReclaimPolicy{
	v1alpha1.ReclaimDelete: pb.ReclaimPolicy_RECLAIM_POLICY_DELETE,
	v1alpha1.ReclaimRetain: pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN,
	v1alpha1.ReclaimTrash:  pb.ReclaimPolicy_RECLAIM_POLICY_TRASH,
}

// maxSources bounds how far a volume's origin is followed.
const maxSources = 64

// cycle refuses a volume that would be made from itself, by way of others: each would wait for the next one for ever.
func (v *volumes) cycle(ctx context.Context, r *v1alpha1.Volume) error {
	way, at := []string{r.Name}, r
	for range maxSources {
		next, err := v.source(ctx, at)
		if next == "" || err != nil {
			return err
		}
		way = append(way, next)
		if next == r.Name {
			return mirror.Problemf("Cycle", "the volume would be made from itself (%s): give one of them another source, or none",
				strings.Join(way, " from "))
		}
		at = &v1alpha1.Volume{}
		if err := v.client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: next}, at); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}

// source is the volume that a volume is made from, by way of a snapshot or not; empty: none that is known.
func (v *volumes) source(ctx context.Context, r *v1alpha1.Volume) (string, error) {
	if r.Spec.Source == nil || r.Status.ControlPlane != nil { // what is made already waits for nobody
		return "", nil
	}
	if r.Spec.Source.Snapshot == "" {
		return r.Spec.Source.Volume, nil
	}
	snapshot := &v1alpha1.Snapshot{}
	err := v.client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.Source.Snapshot}, snapshot)
	return snapshot.Spec.Volume, client.IgnoreNotFound(err)
}

func show(r *v1alpha1.Volume, have *pb.Volume) {
	s := have.GetStatus()
	r.Status.NAA, r.Status.SerialNumber = s.GetNaa(), s.GetSerialNumber()
	r.Status.Ownership = controlplane.Word(s.GetOwnership())
	r.Status.OwnerGateway, r.Status.Epoch = int64(s.GetOwnerGateway()), int64(s.GetEpoch())
	r.Status.RollingBack = s.GetRollingBack()
	r.Status.Capacity, r.Status.AllocatedBytes = nil, nil
	if s.GetCapacityBytes() > 0 {
		r.Status.Capacity = resource.NewQuantity(s.GetCapacityBytes(), resource.BinarySI)
	}
	if allocated := s.GetAllocatedBytes(); allocated >= 0 {
		r.Status.AllocatedBytes = &allocated
	}
}
