// Package volume is the controller of Volumes.
package volume

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=volumes,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=volumes/status;volumes/finalizers,verbs=get;update;patch

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection mirror.ControlPlane) error {
	volumes := &volumes{client: mgr.GetClient()}
	return mirror.Setup(mgr, connection.Findings, mirror.Managed[*v1alpha1.Volume, *pb.Volume]{
		Noun: mirror.Volumes(connection),
		Want: volumes.want, Show: convert.ShowVolume, HasReadyCondition: true, HoldsData: true,
	}, nil)
}

type volumes struct{ client client.Client }

func (v *volumes) want(ctx context.Context, r *v1alpha1.Volume, _ *mirror.SecretReader) (*pb.Volume, error) {
	if err := v.cycle(ctx, r); err != nil {
		return nil, err
	}
	spec, err := convert.VolumeSpec(r)
	return &pb.Volume{Spec: spec}, err
}

// maxSources bounds the chain of a volume's sources that is followed.
const maxSources = 64

// cycle refuses a volume whose sources lead back to itself: each would wait for the next one without end.
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

// source returns the volume from which a volume is made, directly or through a snapshot; empty: none known.
func (v *volumes) source(ctx context.Context, r *v1alpha1.Volume) (string, error) {
	if r.Spec.Source == nil || r.Status.ControlPlane != nil { // a volume that exists already needs no source
		return "", nil
	}
	if r.Spec.Source.Snapshot == "" {
		return r.Spec.Source.Volume, nil
	}
	snapshot := &v1alpha1.Snapshot{}
	err := v.client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.Source.Snapshot}, snapshot)
	return snapshot.Spec.Volume, client.IgnoreNotFound(err)
}
