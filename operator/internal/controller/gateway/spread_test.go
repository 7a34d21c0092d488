package gateway

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

const (
	red, blue = v1alpha1.LabelSwitch + "red", v1alpha1.LabelSwitch + "blue"
	zone      = corev1.LabelTopologyZone
)

func labelled(name string, labels ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, key := range labels {
		node.Labels[key] = name
	}
	return node
}

// spreadOver returns the keys over which a gateway with portals on red, blue and one more fabric is spread.
func spreadOver(t *testing.T, r *v1alpha1.Gateway, nodes ...*corev1.Node) []string {
	t.Helper()
	made := fake.NewClientBuilder()
	for _, node := range nodes {
		made.WithObjects(node)
	}
	g := &gateways{client: made.Build()}
	all, err := g.spread(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, c := range g.render(r, all).Spec.TopologySpreadConstraints {
		keys = append(keys, c.TopologyKey)
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway || c.LabelSelector.MatchLabels[v1alpha1.LabelGatewayPool] != "pool" {
			t.Errorf("%+v", c)
		}
	}
	return keys
}

func onFabrics() *v1alpha1.Gateway {
	return &v1alpha1.Gateway{Spec: v1alpha1.GatewaySpec{GatewayPool: "pool", Portals: []v1alpha1.PortalTemplate{
		{Fabric: "red"}, {Fabric: "blue"}, {Fabric: strings.Repeat("x", 64)}}}}
}

func TestGatewaysAreSpreadOverTheSwitchesAndZonesThatNodesAreLabelledWith(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		want  []string
	}{
		"all labels":        {[]*corev1.Node{labelled("a", red, blue, zone), labelled("b", red, blue, zone)}, []string{red, blue, zone}},
		"zones alone":       {[]*corev1.Node{labelled("a", zone)}, []string{zone}},
		"no label":          {[]*corev1.Node{labelled("a")}, nil},
		"on a part of them": {[]*corev1.Node{labelled("a"), labelled("b", blue)}, []string{blue}},
		"on different ones": {[]*corev1.Node{labelled("a", red), labelled("b", zone)}, []string{red}}, // both would exclude every node
	} {
		t.Run(name, func(t *testing.T) {
			if keys := spreadOver(t, onFabrics(), c.nodes...); !slices.Equal(keys, c.want) {
				t.Errorf("%v, wanted %v", keys, c.want)
			}
		})
	}
}

func TestGatewaysAreSpreadByLabelsOfNodesThatTheyMayRunOn(t *testing.T) {
	r := onFabrics()
	r.Spec.Template.NodeSelector = map[string]string{"disks": "b"}
	if keys := spreadOver(t, r, labelled("a", red, zone), labelled("b", "disks", zone)); !slices.Equal(keys, []string{zone}) {
		t.Errorf("%v", keys)
	}
	r.Spec.Node = "b"
	if keys := spreadOver(t, r, labelled("b", "disks", zone)); keys != nil {
		t.Errorf("pinned: %v", keys)
	}
}

func TestANodesSwitchIsItsLabelsElseItsAnnotations(t *testing.T) {
	node := labelled("a")
	node.Annotations = map[string]string{v1alpha1.AnnotationSwitch + "red": "by-annotation"}
	if name := switchOf(node, "red"); name != "by-annotation" {
		t.Errorf("%q", name)
	}
	node.Labels[red] = "by-label"
	if name := switchOf(node, "red"); name != "by-label" {
		t.Errorf("%q", name)
	}
	if name := switchOf(node, "blue"); name != "" {
		t.Errorf("%q", name)
	}
}
