package mirror

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

const (
	deleted  = pb.ReclaimPolicy_RECLAIM_POLICY_DELETE
	retained = pb.ReclaimPolicy_RECLAIM_POLICY_RETAIN
	trashed  = pb.ReclaimPolicy_RECLAIM_POLICY_TRASH
)

// plane is a control plane with at most one object.
type plane[P Object] struct {
	stored  P
	refusal error // the error of an update; nil: none
	updates []P
	// deletedAs is the stored object at the time of the deletion request.
	deletedAs P
}

func (p *plane[P]) noun() Noun[P] {
	return Noun[P]{
		Get: func(context.Context, string) (P, error) {
			if isNil(p.stored) {
				return p.stored, status.Error(codes.NotFound, "gone")
			}
			return proto.Clone(p.stored).(P), nil
		},
		Update: func(_ context.Context, object P) (P, error) {
			if p.refusal != nil {
				var none P
				return none, p.refusal
			}
			p.updates = append(p.updates, object)
			p.stored = proto.Clone(object).(P)
			return object, nil
		},
		Delete: func(context.Context, string, string) (P, error) {
			var none P
			p.deletedAs, p.stored = p.stored, none
			return none, nil
		},
	}
}

// over returns a mirror of one resource in a fake API server.
func over[R v1alpha1.Resource, P Object](t *testing.T, r R, kind Managed[R, P]) *Mirror[R, P] {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(asObject(r)).WithStatusSubresource(asObject(r)).Build()
	return &Mirror[R, P]{client: api, recorder: events.NewFakeRecorder(8), Managed: kind}
}

// beingDeleted gives a resource a name, and a deletion that waits for the operator and for other controllers.
func beingDeleted(r v1alpha1.Resource, others ...string) {
	now := metav1.Now()
	r.SetNamespace("shop")
	r.SetName("orders")
	r.SetUID("u")
	r.SetFinalizers(append([]string{v1alpha1.Finalizer}, others...))
	r.SetDeletionTimestamp(&now)
}

// reconciled reconciles a resource that is being deleted once, and reports whether it still exists.
func reconciled[R v1alpha1.Resource, P Object](t *testing.T, r R, p *plane[P]) bool {
	t.Helper()
	beingDeleted(r)
	m := over(t, r, Managed[R, P]{
		Noun: p.noun(), HoldsData: true,
		Want: func(context.Context, R, *SecretReader) (P, error) {
			var none P
			return none, Problemf("Cycle", "the rest of the spec is wrong")
		},
	})
	c := m.client
	key := client.ObjectKeyFromObject(asObject(r))
	if _, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	err := c.Get(t.Context(), key, asObject(r))
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

func head() *pb.ObjectMeta {
	return &pb.ObjectMeta{Name: "shop.orders", Uid: "o", ResourceVersion: 7, Labels: map[string]string{labelUID: "u", "mine": "yes"}}
}

func TestAVolumeIsDeletedWithTheReclaimPolicyThatItsResourceHas(t *testing.T) {
	for _, c := range []struct {
		resource v1alpha1.ReclaimPolicy
		stored   pb.ReclaimPolicy
		want     pb.ReclaimPolicy
		updates  int
	}{
		{v1alpha1.ReclaimRetain, deleted, retained, 1},
		{v1alpha1.ReclaimTrash, deleted, trashed, 1},
		{v1alpha1.ReclaimDelete, retained, deleted, 1},
		{v1alpha1.ReclaimRetain, retained, retained, 0},
	} {
		have := &pb.Volume{Meta: head(), Spec: &pb.VolumeSpec{Pool: "p", SizeBytes: 1 << 30, ReclaimPolicy: c.stored}}
		p := &plane[*pb.Volume]{stored: have}
		r := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{Pool: "another", ReclaimPolicy: c.resource}}
		if reconciled(t, r, p) {
			t.Errorf("%s over %s: the resource is there still: %+v", c.resource, c.stored, r.Status.Conditions)
		}
		if policy := p.deletedAs.GetSpec().GetReclaimPolicy(); policy != c.want || len(p.updates) != c.updates {
			t.Errorf("%s over %s: deleted as %s after %d updates", c.resource, c.stored, policy, len(p.updates))
		}
		have.Spec.ReclaimPolicy = c.want // and nothing else, at the version that was read
		if len(p.updates) > 0 && !proto.Equal(p.updates[0], have) {
			t.Errorf("%s over %s: stored %v", c.resource, c.stored, p.updates[0])
		}
	}
}

func TestASnapshotIsDeletedWithTheReclaimPolicyThatItsResourceHas(t *testing.T) {
	have := &pb.Snapshot{Meta: head(), Spec: &pb.SnapshotSpec{Volume: "shop.v", ReclaimPolicy: deleted}}
	p := &plane[*pb.Snapshot]{stored: have}
	reconciled(t, &v1alpha1.Snapshot{Spec: v1alpha1.SnapshotSpec{ReclaimPolicy: v1alpha1.ReclaimRetain}}, p)
	if policy := p.deletedAs.GetSpec().GetReclaimPolicy(); policy != retained {
		t.Errorf("deleted as %s", policy)
	}
}

func TestAVolumeWithARefusedReclaimPolicyIsNotDeletedAndReportsTheReason(t *testing.T) {
	for _, code := range []codes.Code{codes.FailedPrecondition, codes.Aborted} { // a pool without Trash; a newer version
		p := &plane[*pb.Volume]{refusal: status.Error(code, "no Trash here"),
			stored: &pb.Volume{Meta: head(), Spec: &pb.VolumeSpec{ReclaimPolicy: deleted}}}
		r := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{ReclaimPolicy: v1alpha1.ReclaimTrash}}
		if !reconciled(t, r, p) || p.deletedAs != nil {
			t.Fatalf("%s: deleted as %v", code, p.deletedAs)
		}
		condition := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
		if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != ReasonNotPossible || condition.Message != "no Trash here" {
			t.Errorf("%s: Ready is %+v", code, condition)
		}
	}
}

func TestTheFinalizerThatAnotherControllerRemovesMeanwhileIsNotRestored(t *testing.T) {
	const other = "example.org/backup"
	r := &v1alpha1.Volume{}
	beingDeleted(r, other)
	m := over(t, r, Managed[*v1alpha1.Volume, *pb.Volume]{Noun: (&plane[*pb.Volume]{}).noun()})
	key, api := client.ObjectKeyFromObject(r), m.client.(client.WithWatch)
	removeOther := sync.OnceFunc(func() {
		now := &v1alpha1.Volume{}
		err := api.Get(t.Context(), key, now)
		if err == nil {
			now.SetFinalizers([]string{v1alpha1.Finalizer})
			err = api.Update(t.Context(), now)
		}
		if err != nil {
			t.Error(err)
		}
	})
	m.client = interceptor.NewClient(api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			removeOther() // after the resource was read
			return c.Patch(ctx, o, patch, options...)
		}})
	for range 2 {
		if _, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	left := &v1alpha1.Volume{}
	if err := api.Get(t.Context(), key, left); !apierrors.IsNotFound(err) {
		t.Errorf("the resource is there still, with finalizers %v: %v", left.GetFinalizers(), err)
	}
}

func TestAVolumeThatIsBeingDeletedAlreadyIsLeftAsItIs(t *testing.T) {
	have := &pb.Volume{Meta: head(), Spec: &pb.VolumeSpec{ReclaimPolicy: deleted}}
	have.Meta.DeleteTime = timestamppb.Now()
	p := &plane[*pb.Volume]{stored: have}
	r := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{ReclaimPolicy: v1alpha1.ReclaimRetain}}
	if !reconciled(t, r, p) || len(p.updates) > 0 {
		t.Errorf("updated to %v", p.updates)
	}
}
