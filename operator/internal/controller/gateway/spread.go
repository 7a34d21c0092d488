package gateway

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// switchOf returns the switch of a fabric to which a node is attached, from its label, else its annotation; empty: not known.
func switchOf(node *corev1.Node, fabric string) string {
	return cmp.Or(node.Labels[v1alpha1.LabelSwitch+fabric], node.Annotations[v1alpha1.AnnotationSwitch+fabric])
}

// spread returns the domains over which a gateway's pool is spread: the switches of each of its fabrics, and zones, as far as
// nodes have the labels. render puts gateways on different nodes.
func (g *gateways) spread(ctx context.Context, r *v1alpha1.Gateway) ([]corev1.TopologySpreadConstraint, error) {
	if r.Spec.Node != "" {
		return nil, nil // it has no choice
	}
	var nodes corev1.NodeList
	if err := g.client.List(ctx, &nodes, client.MatchingLabels(r.Spec.Template.NodeSelector)); err != nil {
		return nil, err
	}
	var keys []string
	for _, portal := range r.Spec.Portals {
		keys = append(keys, v1alpha1.LabelSwitch+portal.Fabric)
	}
	var all []corev1.TopologySpreadConstraint
	for _, key := range commonKeys(append(keys, corev1.LabelTopologyZone), nodes.Items) {
		all = append(all, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelGatewayPool: r.Spec.GatewayPool}},
		})
	}
	return all, nil
}

// commonKeys returns the first keys of which some node has all. The scheduler ignores a node that lacks one of the keys of a
// constraint: with a key that no node has, nothing would be spread.
func commonKeys(keys []string, nodes []corev1.Node) []string {
	var taken []string
	for _, key := range keys {
		if len(validation.IsQualifiedName(key)) > 0 {
			continue // a fabric's name may be longer than a label's
		}
		var have []corev1.Node
		for _, node := range nodes {
			if node.Labels[key] != "" {
				have = append(have, node)
			}
		}
		if len(have) > 0 {
			taken, nodes = append(taken, key), have
		}
	}
	return taken
}
