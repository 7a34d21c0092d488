package mirror

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sluice.dev/sluice/operator/api/v1alpha1"
	sluice "sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Reasons of the condition Ready while a resource is being deleted.
const (
	ReasonDeleting        = "Deleting"
	ReasonDeletionBlocked = "DeletionBlocked"
)

// abandoned reports whether a resource must be released at once, regardless of its object.
func abandoned(r v1alpha1.Resource) bool {
	return r.GetDeletionTimestamp() != nil && r.GetAnnotations()[v1alpha1.AnnotationAbandon] == "true"
}

func (m *Mirror[R, P]) abandon(ctx context.Context, r R) error {
	if !controllerutil.ContainsFinalizer(r, v1alpha1.Finalizer) {
		return nil
	}
	m.recordEvent(r, corev1.EventTypeWarning, "Abandoned", "the resource goes; what stands for it in the control plane stays there")
	return m.release(ctx, r)
}

// remove deletes the object, and releases the resource once it is gone. The object's reclaim policy decides about the data, so
// the resource's policy is stored first.
func (m *Mirror[R, P]) remove(ctx context.Context, r R, have P) error {
	if !controllerutil.ContainsFinalizer(r, v1alpha1.Finalizer) {
		return nil
	}
	ours := !isNil(have) && have.GetMeta().GetLabels()[labelUID] == string(r.GetUID())
	if !ours { // it is gone, or never belonged to this resource
		if m.AfterDelete != nil {
			if err := m.AfterDelete(ctx, r); err != nil {
				return err
			}
		}
		return m.release(ctx, r)
	}
	if have.GetMeta().GetDeleteTime() == nil {
		if err := m.storePolicy(ctx, r, have); err != nil {
			return err
		}
		if m.Leave != nil {
			if err := m.Leave(ctx, r, have); err != nil {
				return err
			}
		}
		if err := m.delete(ctx, have); err != nil {
			return err
		}
	}
	if left, err := m.observe(ctx, r); err != nil {
		return err
	} else if !isNil(left) {
		return Problemf(ReasonDeleting, "the control plane is deleting %s %s", m.Noun.Kind, Name(r))
	}
	if m.AfterDelete != nil {
		if err := m.AfterDelete(ctx, r); err != nil {
			return err
		}
	}
	return m.release(ctx, r)
}

// storePolicy stores the resource's reclaim policy in the object, because a policy that was changed just before the deletion has
// not been stored. It stores nothing else of the spec, because other problems of the spec must not prevent the deletion.
func (m *Mirror[R, P]) storePolicy(ctx context.Context, r R, have P) error {
	policy := reclaimPolicy(r).Number()
	if policy == 0 {
		return nil
	}
	want := proto.Clone(have).(P) // with its version, so that changes by other clients are not reverted
	spec := specOf(want).ProtoReflect()
	field := spec.Descriptor().Fields().ByName("reclaim_policy")
	if spec.Get(field).Enum() == policy {
		return nil
	}
	spec.Set(field, protoreflect.ValueOfEnum(policy))
	_, err := m.Noun.Update(ctx, want)
	if sluice.IsNotFound(err) {
		return nil
	}
	return err
}

// reclaimPolicy returns a resource's reclaim policy; 0 for a kind without data.
func reclaimPolicy(object v1alpha1.Resource) pb.ReclaimPolicy {
	var word v1alpha1.ReclaimPolicy
	switch r := object.(type) {
	case *v1alpha1.Volume:
		word = r.Spec.ReclaimPolicy
	case *v1alpha1.Snapshot:
		word = r.Spec.ReclaimPolicy
	}
	return pb.ReclaimPolicy(pb.ReclaimPolicy_value["RECLAIM_POLICY_"+strings.ToUpper(string(word))])
}

func (m *Mirror[R, P]) delete(ctx context.Context, have P) error {
	head := have.GetMeta()
	_, err := m.Noun.Delete(ctx, head.GetName(), head.GetUid())
	if err == nil || sluice.IsNotFound(err) {
		return nil
	}
	refusal := Explain(err)
	if refusal.Code != codes.FailedPrecondition {
		return err
	}
	return Problemf(ReasonDeletionBlocked, "%s; it goes as soon as nothing uses it. (Annotating %s=true lets this resource go and "+
		"leaves the object in the control plane.)", refusal.Message, v1alpha1.AnnotationAbandon)
}

// release removes the finalizer. The patch contains the whole list of finalizers. The optimistic lock makes it fail if another
// controller has changed the list since it was read: otherwise the patch would restore a finalizer that its controller has removed.
func (m *Mirror[R, P]) release(ctx context.Context, r R) error {
	before := r.DeepCopyObject().(R)
	controllerutil.RemoveFinalizer(r, v1alpha1.Finalizer)
	return client.IgnoreNotFound(m.client.Patch(ctx, r, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}
