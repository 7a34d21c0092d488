package test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// fabrics creates red and blue, whose subnets contain the cluster's nodes.
func fabrics(t *testing.T) {
	t.Helper()
	create(t, read(t, &v1alpha1.Fabric{}, "metadata: {name: red}\nspec: {subnets: [127.0.1.0/24]}"),
		read(t, &v1alpha1.Fabric{}, "metadata: {name: blue}\nspec: {subnets: [127.0.2.0/24]}"))
}

func gatewayPool(t *testing.T, name, more string) *v1alpha1.GatewayPool {
	t.Helper()
	return read(t, &v1alpha1.GatewayPool{}, fmt.Sprintf(`
metadata: {name: %s}
spec: {portals: [{fabric: red, port: 3270}, {fabric: blue, port: 3270}], template: {image: "sluice:1"}%s}`, name, more))
}

// serving creates a pool of gateways in a cluster of this number of nodes, and waits until they serve.
func serving(t *testing.T, nodes int, name, more string) (*cluster, *v1alpha1.GatewayPool) {
	t.Helper()
	fabrics(t)
	c, pool := startCluster(t, nodes), gatewayPool(t, name, more)
	create(t, pool)
	ready(t, pool, metav1.ConditionTrue, "", "")
	if early := c.readyEarly(); len(early) > 0 {
		t.Errorf("gateways passed for ready that had never connected: %v", early)
	}
	return c, pool
}

func newImage(t *testing.T, pool *v1alpha1.GatewayPool) {
	t.Helper()
	if err := change(t, pool, func(p *v1alpha1.GatewayPool) { p.Spec.Template.Image = "sluice:2" }); err != nil {
		t.Fatal(err)
	}
}

func gatewayOf(t *testing.T, name string) *v1alpha1.Gateway {
	t.Helper()
	g := &v1alpha1.Gateway{}
	if err := env.client.Get(t.Context(), types.NamespacedName{Name: name}, g); err != nil {
		t.Fatal(err)
	}
	return g
}

func podOf(t *testing.T, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, env.client.Get(t.Context(), types.NamespacedName{Namespace: systemNamespace, Name: name}, pod)
}

// exported creates a target that the pool exports over two paths, and waits until it is redundant.
func exported(t *testing.T, pool string) *v1alpha1.Target {
	t.Helper()
	create(t, read(t, &v1alpha1.Host{}, fmt.Sprintf(`
metadata: {namespace: shop, name: %s}
spec: {initiators: ["iqn.2026-11.org.example:%s"], allowUnauthenticated: true}`, pool, pool)))
	target := read(t, &v1alpha1.Target{}, fmt.Sprintf(`
metadata: {namespace: shop, name: %s}
spec: {gatewayPool: %s, hosts: [%s]}`, pool, pool, pool))
	create(t, target)
	ready(t, target, metav1.ConditionTrue, "Exported", "2 of 2")
	return target
}

// identity returns the values by which hosts identify a gateway.
func identity(g *v1alpha1.Gateway) string {
	text := fmt.Sprint("number ", g.Status.Number)
	for _, portal := range g.Status.Portals {
		text += fmt.Sprint(", ", portal.Fabric, " ", portal.PortalGroupTag)
	}
	return text
}

// gatewayConditions returns the conditions of gateways, for the message of a failed test.
func gatewayConditions[V any](t *testing.T, names map[string]V) (text string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		text += fmt.Sprintf("; %s %s %+v", name, gatewayOf(t, name).Status.Health, gatewayOf(t, name).Status.Conditions)
	}
	return text
}

// rollOut gives a pool another template, and asserts that every gateway gets a new pod and no two are away at one time.
func rollOut(t *testing.T, nodes *cluster, pool *v1alpha1.GatewayPool) {
	t.Helper()
	replicas, pods := pool.Spec.Replicas, map[string]types.UID{}
	for i := range replicas {
		name := fmt.Sprintf("%s-%d", pool.Name, i)
		pod, err := podOf(t, name)
		if err != nil {
			t.Fatal(err)
		}
		pods[name] = pod.UID
	}
	nodes.watchPool(pool.Name, int(replicas))
	newImage(t, pool)
	eventually(t, func() error {
		if err := env.client.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); err != nil {
			return err
		}
		for name := range pods {
			pod, err := podOf(t, name)
			if err != nil || pod.UID == pods[name] || pod.Spec.Containers[0].Image != "sluice:2" {
				return fmt.Errorf("%s has its old pod: %v; pool %+v%s", name, err, pool.Status.Conditions, gatewayConditions(t, pods))
			}
		}
		if pool.Status.UpdatedReplicas != replicas || pool.Status.ReadyReplicas != replicas {
			return fmt.Errorf("pool %+v", pool.Status)
		}
		return nil
	})
	if most := nodes.missing(pool.Name); most != 1 {
		t.Errorf("%d of %d gateways were away at one time", most, replicas)
	}
}

func TestAPoolsTemplateIsRolledOutOneDrainedGatewayAtATimeAndIdentitiesStay(t *testing.T) {
	nodes, pool := serving(t, 3, "rolled", ", replicas: 3")
	target := exported(t, "rolled")
	before := map[string]string{}
	for i := range 3 {
		name := fmt.Sprintf("rolled-%d", i)
		before[name] = identity(gatewayOf(t, name))
	}
	rollOut(t, nodes, pool)
	if wrong := nodes.endedUndrained(); len(wrong) > 0 {
		t.Errorf("pods of gateways that were not drained were ended: %v", wrong)
	}
	for name, was := range before {
		if now := identity(gatewayOf(t, name)); now != was {
			t.Errorf("%s is another one: %s, before %s", name, now, was)
		}
	}
	ready(t, target, metav1.ConditionTrue, "Exported", "2 of 2")
}

func TestScalingDownDrainsTheLastGatewayAndTakesItsPod(t *testing.T) {
	_, pool := serving(t, 3, "scaled", ", replicas: 3")
	number := gatewayOf(t, "scaled-2").Status.Number
	exported(t, "scaled")
	scale := func(replicas int32) {
		t.Helper()
		err := env.client.SubResource("scale").Update(t.Context(), pool, client.WithSubResourceBody(
			&autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "scaled"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}))
		if err != nil {
			t.Fatal(err)
		}
	}
	scale(2)
	eventually(t, func() error {
		err := env.client.Get(t.Context(), types.NamespacedName{Name: "scaled-2"}, &v1alpha1.Gateway{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there: %v", err)
		}
		_, err = podOf(t, "scaled-2")
		if err == nil {
			return fmt.Errorf("its pod is there")
		}
		return client.IgnoreNotFound(err)
	})
	scale(3)
	eventually(t, func() error {
		g := &v1alpha1.Gateway{}
		if err := env.client.Get(t.Context(), types.NamespacedName{Name: "scaled-2"}, g); err != nil {
			return err
		}
		if g.Status.Number == 0 || g.Status.Number == number {
			return fmt.Errorf("number %d, before %d: none is given twice", g.Status.Number, number)
		}
		return nil
	})
}

func TestACordonedNodesGatewayIsDrainedAndOnlyThenMayBeEvicted(t *testing.T) {
	serving(t, 3, "cordoned", ", replicas: 3, placement: Pinned")
	exported(t, "cordoned")
	budget := &policyv1.PodDisruptionBudget{}
	if err := env.client.Get(t.Context(), types.NamespacedName{Namespace: systemNamespace, Name: "cordoned"}, budget); err != nil {
		t.Fatal(err)
	}
	if budget.Spec.MinAvailable.IntValue() != 3 {
		t.Errorf("budget %+v", budget.Spec)
	}
	node := &corev1.Node{}
	node.Name = gatewayOf(t, "cordoned-0").Spec.Node
	if err := change(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true }); err != nil {
		t.Fatal(err)
	}
	selected, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	counted := func(want int) {
		t.Helper()
		eventually(t, func() error {
			var pods corev1.PodList
			err := env.client.List(t.Context(), &pods, client.InNamespace(systemNamespace), client.MatchingLabelsSelector{Selector: selected})
			if err != nil || len(pods.Items) != want {
				return fmt.Errorf("%v: the budget counts %d pods, wanted %d; %+v", err, len(pods.Items), want, gatewayOf(t, "cordoned-0"))
			}
			return nil
		})
	}
	counted(2)
	eventually(t, func() error {
		if g := gatewayOf(t, "cordoned-0"); g.Status.Health != "Drained" || !g.Spec.Maintenance {
			return fmt.Errorf("%+v %+v", g.Spec, g.Status)
		}
		return nil
	})
	if err := change(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = false }); err != nil {
		t.Fatal(err)
	}
	counted(3)
}

func TestAPinnedPoolWithoutEnoughNodesSaysSo(t *testing.T) {
	fabrics(t)
	startCluster(t, 1)
	pool := gatewayPool(t, "narrow", ", replicas: 2, placement: Pinned")
	create(t, pool)
	ready(t, pool, metav1.ConditionFalse, "NoNode", "there are no more nodes")
}

func TestAPoolInUseIsNotDeleted(t *testing.T) {
	_, pool := serving(t, 2, "needed", ", replicas: 2")
	target := exported(t, "needed")
	if err := env.client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	ready(t, pool, metav1.ConditionFalse, "DeletionBlocked", "Target shop.needed")
	ready(t, target, metav1.ConditionTrue, "Exported", "2 of 2")
	remove(t, target)
}

func TestARolloutWaitsForATargetThatLacksAPath(t *testing.T) {
	_, pool := serving(t, 1, "lacking", ", replicas: 1")
	create(t, read(t, &v1alpha1.Target{}, "metadata: {namespace: shop, name: lacking}\nspec: {gatewayPool: lacking}"))
	target := &v1alpha1.Target{}
	target.Namespace, target.Name = "shop", "lacking"
	ready(t, target, metav1.ConditionTrue, "Exported", "1 of 2")
	newImage(t, pool)
	ready(t, pool, metav1.ConditionFalse, "RolloutBlocked", "target shop.lacking would lose a path it cannot spare")
	shows(t, pool, v1alpha1.ConditionProgressing, metav1.ConditionTrue, "WaitsForRedundancy", "target shop.lacking")
	if g := gatewayOf(t, "lacking-0"); g.Spec.Template.Image != "sluice:1" {
		t.Errorf("rolled out nevertheless: %s", g.Spec.Template.Image)
	}
}

func TestAPausedRolloutBeginsNothingAndSaysSo(t *testing.T) {
	_, pool := serving(t, 1, "paused", ", replicas: 1, rollout: {paused: true}")
	newImage(t, pool)
	shows(t, pool, v1alpha1.ConditionProgressing, metav1.ConditionTrue, "Paused", "giving gateway paused-0 the new template waits")
	if g := gatewayOf(t, "paused-0"); g.Spec.Template.Image != "sluice:1" {
		t.Errorf("rolled out nevertheless: %s", g.Spec.Template.Image)
	}
}

func TestAGatewayThatCannotBeDrainedKeepsItsPod(t *testing.T) {
	_, pool := serving(t, 1, "alone", ", replicas: 1")
	target := read(t, &v1alpha1.Target{}, "metadata: {namespace: shop, name: alone}\nspec: {gatewayPool: alone, paths: 1}")
	create(t, target)
	ready(t, target, metav1.ConditionTrue, "Exported", "1 of 1")
	before, err := podOf(t, "alone-0")
	if err != nil {
		t.Fatal(err)
	}
	newImage(t, pool)
	ready(t, gatewayOf(t, "alone-0"), metav1.ConditionFalse, "Draining", "rollout.ignoreRedundancy")
	if after, err := podOf(t, "alone-0"); err != nil || after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Errorf("its pod went though it was not drained: %v", err)
	}
	if err := change(t, pool, func(p *v1alpha1.GatewayPool) { p.Spec.Rollout.IgnoreRedundancy = true }); err != nil {
		t.Fatal(err)
	}
	// The pool may not yet have read that its gateway is not ready, and still be ready.
	eventually(t, func() error {
		if after, err := podOf(t, "alone-0"); err != nil || after.UID == before.UID {
			return fmt.Errorf("its pod stays though redundancy shall be ignored: %v", err)
		}
		return nil
	})
	ready(t, pool, metav1.ConditionTrue, "", "")
}

func TestGatewaysThatEachHaveAPathOfATargetAreReplacedOneAtATimeWhileTheOtherServes(t *testing.T) {
	nodes, pool := serving(t, 2, "pair", ", replicas: 2, placement: Pinned")
	target := exported(t, "pair")
	rollOut(t, nodes, pool)
	ready(t, target, metav1.ConditionTrue, "Exported", "2 of 2")
	node := &corev1.Node{}
	node.Name = gatewayOf(t, "pair-0").Spec.Node
	if err := change(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true }); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		pod, err := podOf(t, "pair-0")
		if err != nil || pod.Labels[v1alpha1.LabelDrained] != "true" {
			return fmt.Errorf("the budget keeps the cordoned node's pod: %v %v; %+v", pod.Labels, err, gatewayOf(t, "pair-0").Status)
		}
		return nil
	})
	if pod, err := podOf(t, "pair-1"); err != nil || pod.Labels[v1alpha1.LabelDrained] == "true" {
		t.Errorf("the last gateway that serves might be evicted: %v", err)
	}
}

func TestANodeWithoutAnAddressOnAFabricIsReportedWithARemedy(t *testing.T) {
	create(t, read(t, &v1alpha1.Fabric{}, "metadata: {name: far}\nspec: {subnets: [198.51.100.0/24]}"))
	startCluster(t, 1)
	pool := read(t, &v1alpha1.GatewayPool{}, `
metadata: {name: far}
spec: {replicas: 1, portals: [{fabric: far, port: 3270}], template: {image: "sluice:1"}}`)
	create(t, pool)
	g := &v1alpha1.Gateway{}
	g.Name = "far-0"
	eventually(t, func() error { return env.client.Get(t.Context(), client.ObjectKeyFromObject(g), g) })
	ready(t, g, metav1.ConditionFalse, "NoAddress", "Annotate the node with listen.sluice.dev/far=")
	node := &corev1.Node{}
	node.Name = "n1"
	if err := change(t, node, func(n *corev1.Node) {
		n.Annotations[v1alpha1.AnnotationListen+"far"] = "127.0.1.1"
		n.Annotations[v1alpha1.AnnotationAdvertised+"far"] = "203.0.113.7:860"
	}); err != nil {
		t.Fatal(err)
	}
	ready(t, g, metav1.ConditionTrue, "", "")
	if p := g.Status.Portals[0]; p.Listen != "127.0.1.1:3270" || p.Advertised != "203.0.113.7:860" || p.PortalGroupTag == 0 {
		t.Errorf("%+v", p)
	}
}

func TestBehindLoadBalancersEachGatewayHasItsOwnService(t *testing.T) {
	fabrics(t)
	startCluster(t, 2)
	pool := read(t, &v1alpha1.GatewayPool{}, `
metadata: {name: balanced}
spec: {replicas: 2, portals: [{fabric: red, port: 3270}], template: {image: "sluice:1", network: LoadBalancer}}`)
	create(t, pool)
	var services corev1.ServiceList
	eventually(t, func() error {
		err := env.client.List(t.Context(), &services, client.InNamespace(systemNamespace),
			client.MatchingLabels{v1alpha1.LabelGatewayPool: "balanced"})
		if err != nil || len(services.Items) != 2 {
			return fmt.Errorf("%v: %d Services", err, len(services.Items))
		}
		return nil
	})
	for i := range services.Items { // as a load balancer's controller does
		s := &services.Items[i]
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("203.0.113.%d", i+1)}}
		if err := env.client.Status().Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, s) })
		g := gatewayOf(t, s.Spec.Selector[v1alpha1.LabelGateway])
		ready(t, g, metav1.ConditionTrue, "", "")
		portal := g.Status.Portals[0]
		if !strings.HasPrefix(portal.Advertised, s.Status.LoadBalancer.Ingress[0].IP) || !strings.HasPrefix(portal.Listen, "127.0.1.") {
			t.Errorf("%+v", portal)
		}
	}
}
