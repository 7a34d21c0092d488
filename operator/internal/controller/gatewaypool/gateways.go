package gatewaypool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/mirror"
)

// ordinal returns the number at the end of a gateway's name; -1: it has none.
func ordinal(name string) int {
	if n, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:]); err == nil {
		return n
	}
	return -1
}

// make creates the missing Gateways, with the lowest free names. Each keeps its number, regardless of its pods.
func (p *pools) make(ctx context.Context, r *v1alpha1.GatewayPool, gateways []v1alpha1.Gateway) error {
	taken := map[int]bool{}
	nodes := map[string]bool{}
	for _, g := range gateways {
		taken[ordinal(g.Name)], nodes[g.Spec.Node] = true, true
	}
	for n, missing := 0, int(r.Spec.Replicas)-len(gateways); missing > 0; n++ {
		if taken[n] {
			continue
		}
		gateway := &v1alpha1.Gateway{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", r.Name, n), Labels: map[string]string{v1alpha1.LabelGatewayPool: r.Name},
			},
			Spec: v1alpha1.GatewaySpec{GatewayPool: r.Name, Portals: r.Spec.Portals, Template: r.Spec.Template},
		}
		if r.Spec.Placement == v1alpha1.PlacementPinned {
			node, err := p.freeNode(ctx, r, nodes)
			if err != nil {
				return err
			}
			gateway.Spec.Node, nodes[node] = node, true
		}
		if err := controllerutil.SetControllerReference(r, gateway, p.client.Scheme()); err != nil {
			return err
		}
		if err := p.client.Create(ctx, gateway); err != nil {
			if apierrors.IsAlreadyExists(err) {
				return mirror.Problemf("NameTaken", "there is a Gateway %s that is no member of this pool, or the cache is behind",
					gateway.Name)
			}
			return err
		}
		missing--
	}
	return nil
}

// freeNode returns the first node, by name, on which the pool's gateways may run and none does.
func (p *pools) freeNode(ctx context.Context, r *v1alpha1.GatewayPool, taken map[string]bool) (string, error) {
	var all corev1.NodeList
	if err := p.client.List(ctx, &all, client.MatchingLabelsSelector{
		Selector: labels.SelectorFromSet(r.Spec.Template.NodeSelector)}); err != nil {
		return "", err
	}
	fit := map[string]bool{}
	for i := range all.Items {
		node := &all.Items[i]
		if !taken[node.Name] && !node.Spec.Unschedulable && tolerated(node, r.Spec.Template.Tolerations) {
			fit[node.Name] = true
		}
	}
	names := slices.Sorted(maps.Keys(fit))
	if len(names) == 0 {
		return "", mirror.Problemf("NoNode", "%d gateways are wanted, each pinned to a node of its own, and there are no more nodes: "+
			"%d match template.nodeSelector (%s), of which those are left out that have a gateway of the pool, are cordoned or have "+
			"a taint that is not tolerated. Label more nodes, or take fewer replicas", r.Spec.Replicas, len(all.Items),
			labels.FormatLabels(r.Spec.Template.NodeSelector))
	}
	return names[0], nil
}

func tolerated(node *corev1.Node, tolerations []corev1.Toleration) bool {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
				(t.Operator == corev1.TolerationOpExists || t.Key == taint.Key && t.Value == taint.Value)
		}) {
			return false
		}
	}
	return true
}
