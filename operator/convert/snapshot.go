package convert

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// SnapshotSpec returns the specification of a snapshot.
func SnapshotSpec(r *v1alpha1.Snapshot) (*pb.SnapshotSpec, error) {
	spec := &pb.SnapshotSpec{Volume: NameIn(r.Namespace, r.Spec.Volume), ReclaimPolicy: pb.ReclaimPolicy_RECLAIM_POLICY_DELETE}
	if r.Spec.ReclaimPolicy == "" {
		return spec, nil
	}
	var err error
	spec.ReclaimPolicy, err = valueOf[pb.ReclaimPolicy]("spec.reclaimPolicy", string(r.Spec.ReclaimPolicy))
	return spec, err
}

// ShowSnapshot copies the status of a snapshot.
func ShowSnapshot(r *v1alpha1.Snapshot, have *pb.Snapshot) {
	r.Status.Size, r.Status.TakenTime = nil, nil
	if size := have.GetStatus().GetSizeBytes(); size > 0 {
		r.Status.Size = resource.NewQuantity(size, resource.BinarySI)
	}
	if at := have.GetStatus().GetTakenTime(); at != nil {
		taken := metav1.NewTime(at.AsTime())
		r.Status.TakenTime = &taken
	}
}

func snapshotOf(have *pb.Snapshot, at resourceKey) *v1alpha1.Snapshot {
	r := &v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{Volume: at.relative(have.GetSpec().GetVolume()),
		ReclaimPolicy: v1alpha1.ReclaimPolicy(Word(have.GetSpec().GetReclaimPolicy()))}}
	ShowSnapshot(r, have)
	return r
}
