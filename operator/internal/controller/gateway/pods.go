package gateway

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// pods makes the gateway's pod and Services, and replaces a pod that has ended, or that has an old template and is drained. All
// pods of a gateway have the same name, so there is never more than one.
func (g *gateways) pods(ctx context.Context, r *v1alpha1.Gateway, have *pb.Gateway) error {
	if err := g.services(ctx, r); err != nil {
		return err
	}
	if err := g.certify(ctx, r); err != nil {
		return err
	}
	pod, err := g.pod(ctx, r)
	if err != nil {
		return err
	}
	note(r, pod)
	switch {
	case pod == nil:
		if err := g.inPool(ctx, r); err != nil {
			return err
		}
		spread, err := g.spread(ctx, r)
		if err != nil {
			return err
		}
		err = g.client.Create(ctx, g.render(r, spread))
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache is out of date
		}
		return err
	case pod.DeletionTimestamp != nil:
		return nil
	case !owned(pod, r):
		return mirror.Problemf("NameTaken", "there is a pod %s/%s that is not this gateway's: delete it", pod.Namespace, pod.Name)
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return g.deletePod(ctx, pod)
	case outdated(r, pod) && (have == nil || empty(have) || !serves(pod)):
		return g.deletePod(ctx, pod)
	case outdated(r, pod):
		if may, err := g.spare(ctx, r, have); err != nil || !may {
			return err
		}
		return g.deletePod(ctx, pod)
	}
	return nil
}

// inPool reports an error if the gateway's pool does not exist: its pod would run, and the control plane would refuse the
// gateway.
func (g *gateways) inPool(ctx context.Context, r *v1alpha1.Gateway) error {
	err := g.client.Get(ctx, types.NamespacedName{Name: r.Spec.GatewayPool}, &v1alpha1.GatewayPool{})
	if apierrors.IsNotFound(err) {
		return mirror.Problemf(mirror.ReasonNotPossible, "spec.gatewayPool: there is no GatewayPool named %q; its pod is made "+
			"once there is", r.Spec.GatewayPool)
	}
	return err
}

// pod returns the gateway's pod; nil: there is none.
func (g *gateways) pod(ctx context.Context, r *v1alpha1.Gateway) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := g.client.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: r.Name}, pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return pod, err
}

// note records in the status where the gateway runs. From then on, changes of that node reconcile it.
func note(r *v1alpha1.Gateway, pod *corev1.Pod) {
	r.Status.Pod, r.Status.Node, r.Status.Template = "", "", ""
	if pod != nil && pod.DeletionTimestamp == nil {
		r.Status.Pod, r.Status.Node = pod.Namespace+"/"+pod.Name, pod.Spec.NodeName
		r.Status.Template = pod.Annotations[annotationTemplate]
	}
}

func owned(object client.Object, r *v1alpha1.Gateway) bool {
	for _, owner := range object.GetOwnerReferences() {
		if owner.UID == r.UID {
			return true
		}
	}
	return false
}

// outdated reports whether a pod was made from another template than the gateway has now.
func outdated(r *v1alpha1.Gateway, pod *corev1.Pod) bool {
	return pod.Annotations[annotationTemplate] != Digest(&r.Spec)
}

// serves reports whether a pod's container has ever started: the gateway may have sessions, even if it is not ready.
func serves(pod *corev1.Pod) bool {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Running != nil || container.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// deletePod deletes this pod, and no later one of the same name.
func (g *gateways) deletePod(ctx context.Context, pod *corev1.Pod) error {
	return client.IgnoreNotFound(g.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}))
}

// podProblem returns what a gateway that has never run waits for.
func podProblem(pod *corev1.Pod) error {
	if pod == nil {
		return mirror.Problemf("PodPending", "its pod is being made")
	}
	if message := trouble(pod); message != "" {
		return mirror.Problemf("PodPending", "pod %s: %s", pod.Name, message)
	}
	return mirror.Problemf("PodPending", "pod %s has no node or no address yet", pod.Name)
}

// trouble returns Kubernetes' message about a pod that does not run; empty: none.
func trouble(pod *corev1.Pod) string {
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			return fmt.Sprintf("%s: %s", waiting.Reason, waiting.Message)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason + ": " + condition.Message
		}
	}
	return ""
}

// nodeChanged passes changes that can affect addresses and switches: the node's addresses, annotations and labels.
var nodeChanged = predicate.Or[client.Object](predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		from, _ := e.ObjectOld.(*corev1.Node)
		to, _ := e.ObjectNew.(*corev1.Node)
		return from == nil || to == nil || fmt.Sprint(from.Status.Addresses) != fmt.Sprint(to.Status.Addresses)
	},
})
