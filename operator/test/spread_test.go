package test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// onSwitch labels a node with its switch of the fabric red; its annotation names another one.
func onSwitch(t *testing.T, node, name string) {
	t.Helper()
	if err := change(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		n.Labels = map[string]string{v1alpha1.LabelSwitch + "red": name}
	}); err != nil {
		t.Fatal(err)
	}
}

func TestAPoolsGatewaysAreSpreadOverTheSwitchesThatTheirNodesAreLabelledWith(t *testing.T) {
	fabrics(t)
	startCluster(t, 2)
	onSwitch(t, "n1", "leaf-1")
	onSwitch(t, "n2", "leaf-2")
	pool := gatewayPool(t, "wide", ", replicas: 2")
	create(t, pool)
	ready(t, pool, metav1.ConditionTrue, "", "")
	pod, err := podOf(t, "wide-0")
	if err != nil {
		t.Fatal(err)
	}
	spread := pod.Spec.TopologySpreadConstraints
	if len(spread) != 1 || spread[0].TopologyKey != v1alpha1.LabelSwitch+"red" ||
		spread[0].WhenUnsatisfiable != corev1.ScheduleAnyway {
		t.Errorf("of the two fabrics only red has labels: %+v", spread)
	}
	atSwitch := func(name string) func() error {
		return func() error {
			if portal := gatewayOf(t, "wide-0").Status.Portals[1]; portal.Fabric != "red" || portal.Switch != name {
				return fmt.Errorf("%+v", portal)
			}
			return nil
		}
	}
	node := pod.Spec.NodeName
	eventually(t, atSwitch(map[string]string{"n1": "leaf-1", "n2": "leaf-2"}[node]))
	onSwitch(t, node, "leaf-9")
	eventually(t, atSwitch("leaf-9"))
}
