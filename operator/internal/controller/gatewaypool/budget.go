package gatewaypool

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// budget prevents Kubernetes from evicting a gateway that is not drained. It counts only pods that are not drained, and requires
// all of them. `kubectl drain` cordons the node, and the pool drains the gateway when it is that gateway's turn. Then the pod is
// no longer counted, and the eviction, which kubectl repeats, succeeds.
func (p *pools) budget(ctx context.Context, r *v1alpha1.GatewayPool) error {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: r.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, p.client, budget, func() error {
		always, all := policyv1.AlwaysAllow, intstr.FromInt32(r.Spec.Replicas)
		budget.Spec = policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all, UnhealthyPodEvictionPolicy: &always,
			Selector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{v1alpha1.LabelGatewayPool: r.Name},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelDrained, Operator: metav1.LabelSelectorOpDoesNotExist}},
			},
		}
		return controllerutil.SetControllerReference(r, budget, p.client.Scheme())
	})
	return err
}
