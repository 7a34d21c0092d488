package test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// resource returns a resource of a kind, with any spec, as its own type.
func resource(t *testing.T, kind, name, spec string) client.Object {
	t.Helper()
	made, err := env.client.Scheme().New(v1alpha1.GroupVersion.WithKind(kind))
	must(err)
	text, err := document(t, kind, name, spec).MarshalJSON()
	must(err)
	return read(t, made.(client.Object), string(text))
}

const (
	localPool = `{local: {node: n1, directory: /srv/orders}}`
	openHost  = `{initiators: ["iqn.2026-11.org.example:orders"], allowUnauthenticated: true}`
	noPods    = `{replicas: 0, portals: [{fabric: orders}], template: {image: i}}`
)

// row is a resource in a table.
type row struct{ kind, name, spec string }

func (r row) make(t *testing.T) client.Object { return resource(t, r.kind, r.name, r.spec) }

// present creates resources, and waits until the control plane has them.
func present(t *testing.T, rows ...row) {
	t.Helper()
	for _, each := range rows {
		r := each.make(t)
		create(t, r)
		delivered(t, r.(v1alpha1.Resource))
	}
}

func TestAMissingReferenceIsNamedInTheCondition(t *testing.T) {
	present(t, row{"StoragePool", "orders", localPool}, row{"Fabric", "orders", `{}`}, row{"GatewayPool", "orders", noPods},
		row{"Host", "orders", openHost})
	for _, c := range []struct {
		row
		reason, says string
	}{
		{row{"Volume", "lacks-pool", `{pool: nowhere, size: 1Gi}`}, "NotPossibleNow", `spec.pool: there is no StoragePool named "nowhere"`},
		{row{"Volume", "lacks-source", `{pool: orders, size: 1Gi, source: {volume: absent}}`}, "NotPossibleNow",
			`spec.source.volume: there is no Volume named "shop.absent"`},
		{row{"Volume", "lacks-snapshot", `{pool: orders, size: 1Gi, source: {snapshot: never}}`}, "NotPossibleNow",
			`spec.source.snapshot: there is no Snapshot named "shop.never"`},
		{row{"Volume", "lacks-ceph", `{pool: orders, size: 1Gi, reclaimPolicy: Trash}`}, "NotPossibleNow",
			`spec.reclaimPolicy: is Trash, which only an RBD pool has`},
		{row{"Volume", "lacks-image", `{pool: orders, size: 1Gi, source: {image: old}}`}, "NotPossibleNow", `spec.source.image`},
		{row{"Snapshot", "lacks-volume", `{volume: absent}`}, "NotPossibleNow", `spec.volume: there is no Volume named "shop.absent"`},
		{row{"Target", "lacks-gateways", `{gatewayPool: nowhere}`}, "NotPossibleNow", `there is no GatewayPool named "nowhere"`},
		{row{"Target", "lacks-lun", `{gatewayPool: orders, luns: [{id: 0, volume: absent}]}`}, "NotPossibleNow",
			`there is no Volume named "shop.absent"`},
		{row{"Target", "lacks-host", `{gatewayPool: orders, hosts: [absent]}`}, "NotPossibleNow", `there is no Host named "shop.absent"`},
		{row{"Host", "lacks-fabric", `{initiators: ["iqn.2026-11.org.example:lf"], allowUnauthenticated: true, switches: [{fabric: none, switch: s}]}`},
			"NotPossibleNow", `there is no Fabric named "none"`},
		{row{"Host", "lacks-secret", `{initiators: ["iqn.2026-11.org.example:ls"], chap: {secretRef: {name: none}}}`},
			"SecretMissing", `spec.chap.secretRef: there is no Secret shop/none; make it, with the key "password"`},
		{row{"Host", "same-initiator", `{initiators: ["iqn.2026-11.org.example:orders"], allowUnauthenticated: true}`},
			"AlreadyTaken", `iqn.2026-11.org.example:orders`},
		{row{"GatewayPool", "lacks-fabric", `{replicas: 0, portals: [{fabric: none}], template: {image: i}}`},
			"NotPossibleNow", `there is no Fabric named "none"`},
		{row{"Gateway", "lacks-pool", `{gatewayPool: nowhere, portals: [{fabric: none}], template: {image: i}}`},
			"NotPossibleNow", `spec.gatewayPool: there is no GatewayPool named "nowhere"`},
		{row{"StoragePool", "lacks-secret",
			`{rbd: {monitors: ["192.0.2.1:3300"], user: u, pool: p, keySecretRef: {namespace: shop, name: none, key: token}}}`},
			"SecretMissing", `spec.rbd.keySecretRef: there is no Secret shop/none; make it, with the key "token"`},
		{row{"Fabric", "lacks-switch", `{switches: [s1], links: [{a: s1, b: s9}]}`}, "Invalid", `spec.links[0]`},
	} {
		t.Run(c.kind+"/"+c.name, func(t *testing.T) {
			r := c.make(t)
			create(t, r)
			ready(t, r, metav1.ConditionFalse, c.reason, c.says)
		})
	}
}

func TestADeletionInTheWrongOrderWaitsAndSaysForWhat(t *testing.T) {
	pool, fabric := row{"StoragePool", "orders", localPool}, row{"Fabric", "orders", `{}`}
	gateways := row{"GatewayPool", "orders", noPods}
	disk, host := row{"Volume", "orders", `{pool: orders, size: 1Gi}`}, row{"Host", "orders", openHost}
	for _, c := range []struct {
		deleted row
		needs   []row // created before it
		users   []row // created after it
		says    string
	}{
		{pool, nil, []row{disk}, "in use by Volume shop.orders"},
		{disk, []row{pool}, []row{{"Snapshot", "orders", `{volume: orders}`}}, "in use by Snapshot shop.orders"},
		{disk, []row{pool, fabric, gateways}, []row{{"Target", "orders", `{gatewayPool: orders, luns: [{id: 0, volume: orders}]}`}},
			"in use by Target shop.orders"},
		{host, []row{fabric, gateways}, []row{{"Target", "orders", `{gatewayPool: orders, hosts: [orders]}`}},
			"in use by Target shop.orders"},
		{fabric, nil, []row{gateways}, "in use by GatewayPool orders"},
		{row{"Fabric", "orders", `{switches: [s]}`}, nil, []row{{"Host", "orders",
			`{initiators: ["iqn.2026-11.org.example:orders"], allowUnauthenticated: true, switches: [{fabric: orders, switch: s}]}`}},
			"in use by Host shop.orders"},
		{gateways, []row{fabric}, []row{{"Target", "orders", `{gatewayPool: orders}`}},
			"1 targets are exported by this pool (Target shop.orders)"},
		{row{"Snapshot", "orders", `{volume: orders}`}, []row{pool, disk},
			[]row{{"Volume", "copy", `{pool: orders, size: 1Gi, source: {snapshot: orders}}`}}, "in use by Volume shop.copy"},
	} {
		t.Run(c.deleted.kind+" under "+c.users[0].kind, func(t *testing.T) {
			present(t, c.needs...)
			r := c.deleted.make(t)
			create(t, r)
			delivered(t, r.(v1alpha1.Resource))
			present(t, c.users...)
			must(env.client.Delete(t.Context(), r))
			ready(t, r, metav1.ConditionFalse, "DeletionBlocked", c.says)
		})
	}
}
