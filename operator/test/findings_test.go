package test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// The pool has no gateway on its node, and then one.
func TestAFindingOfTheControlPlaneIsTheConditionOfAResourceUntilItEnds(t *testing.T) {
	fabrics(t)
	startCluster(t, 1)
	gateways := gatewayPool(t, "reaching", ", replicas: 0")
	pool := read(t, &v1alpha1.StoragePool{}, "metadata: {name: unreached}\nspec: {local: {node: n1, directory: "+t.TempDir()+"}}")
	create(t, gateways, pool, volume(t, "unreached", "{pool: unreached, size: 1Mi}"),
		read(t, &v1alpha1.Host{}, `
metadata: {namespace: shop, name: unreached}
spec: {initiators: ["iqn.2026-11.org.example:unreached"], allowUnauthenticated: true}`),
		read(t, &v1alpha1.Target{}, `
metadata: {namespace: shop, name: unreached}
spec: {gatewayPool: reaching, luns: [{id: 0, volume: unreached}], hosts: [unreached]}`))
	const remedy = "sluicectl gateway create --node n1"
	shows(t, pool, v1alpha1.ConditionHealthy, metav1.ConditionFalse, "PoolWithoutGateway", remedy)
	ready(t, pool, metav1.ConditionFalse, "PoolWithoutGateway", remedy)
	must(change(t, gateways, func(p *v1alpha1.GatewayPool) { p.Spec.Replicas = 1 }))
	shows(t, pool, v1alpha1.ConditionHealthy, metav1.ConditionTrue, "NoFinding", "")
	ready(t, pool, metav1.ConditionTrue, "", "")
}
