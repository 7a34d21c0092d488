package test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// document returns a resource of a kind, with any content.
func document(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("spec: "+spec), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "sluice.dev", Version: "v1alpha1", Kind: kind})
	object.SetName(name)
	if kind == "Volume" || kind == "Target" || kind == "Host" || kind == "Snapshot" {
		object.SetNamespace("shop")
	}
	return object
}

const poolSpec = `{portals: [{fabric: red}], template: {image: sluice}%s}`

func TestEveryInvalidFieldIsRefusedWithAWordOnWhatIsPossible(t *testing.T) {
	long := strings.Repeat("a", 190)
	for _, c := range []struct{ kind, name, spec, says string }{
		{"Volume", "a", `{pool: p, size: 1Ki}`, "1Mi to 64Ti"},
		{"Volume", "a", `{pool: p, size: 65Ti}`, "1Mi to 64Ti"},
		{"Volume", "a", `{pool: p, size: "1048576.5"}`, "whole bytes"},
		{"Volume", "a", `{pool: p, size: 1048577}`, "multiple of blockSize"},
		{"Volume", "a", `{pool: p, size: 1049088, blockSize: 4096}`, "multiple of blockSize"},
		{"Volume", "a", `{pool: p, size: much}`, "spec.size"},
		{"Volume", "a", `{pool: p, size: 1Gi, blockSize: 1024}`, "512"},
		{"Volume", "a", `{pool: p, size: 1Gi, writeCache: Perhaps}`, "Disabled"},
		{"Volume", "a", `{pool: p, size: 1Gi, reclaimPolicy: Burn}`, "Retain"},
		{"Volume", "a", `{pool: "", size: 1Gi}`, "spec.pool"},
		{"Volume", "a", `{size: 1Gi}`, "spec.pool"},
		{"Volume", "a", `{pool: p}`, "spec.size"},
		{"Volume", "a", `{pool: p, size: 1Gi, source: {}}`, "exactly one of snapshot, volume and image"},
		{"Volume", "a", `{pool: p, size: 1Gi, source: {volume: b, snapshot: c}}`, "exactly one of snapshot, volume and image"},
		{"Volume", "a", `{pool: p, size: 1Gi, source: {volume: a}}`, "from itself"},
		{"Volume", "a", `{pool: p, size: 1Gi, qos: {iops: -1}}`, "iops"},
		{"Volume", "a", `{pool: p, size: 1Gi, qos: {iopsBurst: 5}}`, "give iops, too"},
		{"Volume", "a", `{pool: p, size: 1Gi, qos: {bytesPerSecond: 5}}`, "at least 1048576"},
		{"Volume", "a", `{pool: p, size: 1Gi, qos: {bytesBurst: 5}}`, "give bytesPerSecond, too"},
		{"Volume", long, `{pool: p, size: 1Gi}`, "at most 189"},
		{"Snapshot", "a", `{}`, "spec.volume"},
		{"Snapshot", "a", `{volume: v, reclaimPolicy: Trash}`, "Retain"},
		{"Host", "a", `{initiators: [], allowUnauthenticated: true}`, "spec.initiators"},
		{"Host", "a", `{initiators: [web], allowUnauthenticated: true}`, "iSCSI name"},
		{"Host", "a", `{initiators: ["iqn.2026-11.Example:web"], allowUnauthenticated: true}`, "lower case"},
		{"Host", "a", `{initiators: ["iqn.2026-11.example:w", "iqn.2026-11.example:w"], allowUnauthenticated: true}`, "Duplicate"},
		{"Host", "a", `{initiators: ["iqn.2026-11.example:w"]}`, "set allowUnauthenticated"},
		{"Host", "a", `{initiators: ["iqn.2026-11.example:w"], allowUnauthenticated: true, mutualChap: {secretRef: {name: s}}}`, "needs chap"},
		{"Host", "a", `{initiators: ["iqn.2026-11.example:w"], chap: {}}`, "secretRef"},
		{"Host", "a", `{initiators: ["iqn.2026-11.example:w"], allowUnauthenticated: true, maxSessions: 5000}`, "4096"},
		{"Host", "a", `{initiators: ["iqn.2026-11.example:w"], allowUnauthenticated: true, switches: [{fabric: r}]}`, "switch"},
		{"Host", "a", `{initiators: ["iqn.2026-11.example:w"], allowUnauthenticated: true, switches: [{fabric: r, switch: a}, {fabric: r, switch: b}]}`, "Duplicate"},
		{"Target", "a", `{gatewayPool: g, iqn: db}`, "iSCSI name"},
		{"Target", "a", `{gatewayPool: g, iqn: "iqn.2026-13.dev:a"}`, "iSCSI name"},
		{"Target", "a", `{gatewayPool: g, paths: 33}`, "32"},
		{"Target", "a", `{paths: 2}`, "spec.gatewayPool"},
		{"Target", "a", `{gatewayPool: g, luns: [{id: 16384, volume: v}]}`, "16383"},
		{"Target", "a", `{gatewayPool: g, luns: [{id: 0, volume: v}, {id: 0, volume: w}]}`, "Duplicate"},
		{"Target", "a", `{gatewayPool: g, luns: [{id: 0}]}`, "volume"},
		{"Target", "a", `{gatewayPool: g, hosts: [h, h]}`, "Duplicate"},
		{"Fabric", "a", `{subnets: [everything]}`, "CIDR"},
		{"Fabric", "a", `{subnets: [192.0.2.1/24]}`, "without host bits"},
		{"Fabric", "a", `{switches: [A]}`, "spec.switches"},
		{"Fabric", "a", `{switches: [s], links: [{a: s, b: s}]}`, "two different switches"},
		{"Fabric", "a", `{switches: [s, t], links: [{a: s, b: t, cost: 0}]}`, "1"},
		{"Fabric", strings.Repeat("a", 64), `{}`, "at most 63"},
		{"StoragePool", "a", `{}`, "exactly one of local and rbd"},
		{"StoragePool", "a", `{local: {node: n1}}`, "exactly one of directory and devices"},
		{"StoragePool", "a", `{local: {node: n1, directory: /d, devices: [/dev/a]}}`, "exactly one of directory and devices"},
		{"StoragePool", "a", `{local: {node: n1, directory: srv}}`, "clean absolute path"},
		{"StoragePool", "a", `{local: {node: n1, directory: /srv/../etc}}`, "clean absolute path"},
		{"StoragePool", "a", `{local: {node: n1, devices: [/etc/passwd]}}`, "devices"},
		{"StoragePool", "a", `{local: {node: n1, directory: /d}, warnPercent: 100}`, "99"},
		{"StoragePool", "a", `{rbd: {monitors: [], user: u, pool: p, keySecretRef: {namespace: ns, name: s}}}`, "monitors"},
		{"StoragePool", "a", `{rbd: {monitors: [ceph], user: u, pool: p, keySecretRef: {namespace: ns, name: s}}}`, "monitors"},
		{"StoragePool", "a", `{rbd: {monitors: ["ceph:6789"], user: client.u, pool: p, keySecretRef: {namespace: ns, name: s}}}`, "without the client."},
		{"StoragePool", "a", `{rbd: {monitors: ["ceph:6789"], user: u, pool: p}}`, "keySecretRef"},
		{"GatewayPool", "a", `{portals: [], template: {image: i}}`, "portals"},
		{"GatewayPool", "a", `{portals: [{fabric: red}], template: {}}`, "image"},
		{"GatewayPool", "a", `{portals: [{fabric: red}, {fabric: red}], template: {image: i}}`, "Duplicate"},
		{"GatewayPool", "a", `{portals: [{fabric: red, port: 860}], template: {image: i}}`, "1024"},
		{"GatewayPool", "a", fmt.Sprintf(poolSpec, `, replicas: -1`), "replicas"},
		{"GatewayPool", "a", fmt.Sprintf(poolSpec, `, placement: Somewhere`), "Pinned"},
		{"GatewayPool", "a", `{portals: [{fabric: red}], placement: Pinned, template: {image: i, network: Multus}}`, "host network"},
		{"GatewayPool", "a", `{portals: [{fabric: red}], template: {image: i, network: Multus}}`, "names its networkAttachment"},
		{"GatewayPool", "a", `{portals: [{fabric: red, networkAttachment: nad}], template: {image: i}}`, "is for the network Multus"},
		{"GatewayPool", strings.Repeat("a", 51), fmt.Sprintf(poolSpec, ``), "at most 50"},
		{"Gateway", "a", `{gatewayPool: g, portals: [{fabric: red}], template: {image: i}, weight: 1001}`, "1000"},
	} {
		object := document(t, c.kind, c.name, c.spec)
		err := env.client.Create(t.Context(), object, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: wanted an error that says %q, have %v", c.kind, c.spec, c.says, err)
		}
	}
}

func TestImmutableFieldsAreRefusedWithARemedy(t *testing.T) {
	for _, c := range []struct{ kind, from, to, says string }{
		{"Volume", `{pool: p, size: 2Gi}`, `{pool: p, size: 1Gi}`, "only grows"},
		{"Volume", `{pool: p, size: 2Gi}`, `{pool: q, size: 2Gi}`, "pool is immutable"},
		{"Volume", `{pool: p, size: 2Gi}`, `{pool: p, size: 2Gi, blockSize: 4096}`, "blockSize is immutable"},
		{"Volume", `{pool: p, size: 2Gi}`, `{pool: p, size: 2Gi, source: {volume: x}}`, "make a new Volume"},
		{"Volume", `{pool: p, size: 2Gi, source: {volume: x}}`, `{pool: p, size: 2Gi, source: {volume: other}}`, "make a new Volume"},
		{"Snapshot", `{volume: v}`, `{volume: w}`, "make a new Snapshot"},
		{"Target", `{gatewayPool: g}`, `{gatewayPool: g, iqn: "iqn.2026-11.dev:a"}`, "iqn is immutable"},
		{"Target", `{gatewayPool: g, iqn: "iqn.2026-11.dev:a"}`, `{gatewayPool: g, iqn: "iqn.2026-11.dev:b"}`, "iqn is immutable"},
		{"Target", `{gatewayPool: g, luns: [{id: 0, volume: v}, {id: 1, volume: w}]}`,
			`{gatewayPool: g, luns: [{id: 0, volume: w}, {id: 1, volume: v}]}`, "unmap the number first"},
		{"StoragePool", `{local: {node: n1, directory: /d}}`, `{local: {node: m1, directory: /d}}`, "node is immutable"},
		{"StoragePool", `{local: {node: n1, directory: /d}}`, `{local: {node: n1, directory: /e}}`, "directory is immutable"},
		{"StoragePool", `{local: {node: n1, directory: /d}}`, `{local: {node: n1, devices: [/dev/a]}}`, "is immutable"},
		{"StoragePool", `{local: {node: n1, directory: /d}}`,
			`{rbd: {monitors: ["c:1"], user: u, pool: p, keySecretRef: {namespace: ns, name: s}}}`, "kind of a pool is immutable"},
		{"GatewayPool", fmt.Sprintf(poolSpec, `, replicas: 0`), fmt.Sprintf(poolSpec, `, replicas: 0, placement: Pinned`), "placement is immutable"},
		{"GatewayPool", fmt.Sprintf(poolSpec, `, replicas: 0`), `{replicas: 0, portals: [{fabric: blue}], template: {image: sluice}}`,
			"fabrics of a pool are immutable"},
	} {
		object := document(t, c.kind, "unchangeable", c.from)
		if err := env.client.Create(t.Context(), object); err != nil {
			t.Errorf("%s %s: %v", c.kind, c.from, err)
			continue
		}
		to := document(t, c.kind, "unchangeable", c.to)
		to.SetResourceVersion("")
		var err error
		eventually(t, func() error { // the operator also writes to the object
			if err := env.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			changed := object.DeepCopy()
			changed.Object["spec"] = to.Object["spec"]
			err = env.client.Update(t.Context(), changed, client.DryRunAll)
			if err != nil && strings.Contains(err.Error(), "has been modified") {
				return err
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s -> %s: wanted an error that says %q, have %v", c.kind, c.from, c.to, c.says, err)
		}
		remove(t, object)
	}
}

// filledIn has the defaults of custom resources, each as KIND PATH=VALUE. tests/defaults requires one for each marker
// +kubebuilder:default.
const filledIn = `
Fabric spec.links.cost=1
Gateway spec.portals.port=3260
Gateway spec.template.forwardingPort=3261
Gateway spec.template.metricsPort=7462
Gateway spec.template.network=HostNetwork
Gateway spec.weight=100
GatewayPool spec.maxSessionsPerGateway=4096
GatewayPool spec.placement=Floating
GatewayPool spec.portals.port=3260
GatewayPool spec.replicas=2
GatewayPool spec.template.forwardingPort=3261
GatewayPool spec.template.metricsPort=7462
GatewayPool spec.template.network=HostNetwork
Host spec.chap.secretRef.key=password
Host spec.maxSessions=64
Host spec.mutualChap.secretRef.key=password
Snapshot spec.reclaimPolicy=Delete
StoragePool spec.rbd.keySecretRef.key=key
StoragePool spec.rbd.radosNamespace=
StoragePool spec.warnPercent=85
Target spec.paths=2
Volume spec.blockSize=512
Volume spec.reclaimPolicy=Delete
Volume spec.writeCache=Disabled
`

func TestOmittedFieldsReceiveTheirDefaults(t *testing.T) {
	stored := map[string]*unstructured.Unstructured{}
	for kind, spec := range map[string]string{
		"Fabric":      `{switches: [a, b], links: [{a: a, b: b}]}`,
		"Gateway":     `{gatewayPool: p, portals: [{fabric: red}], template: {image: sluice}}`,
		"GatewayPool": fmt.Sprintf(poolSpec, ""),
		"Host":        `{initiators: ["iqn.2026-11.example:web"], chap: {secretRef: {name: s}}, mutualChap: {secretRef: {name: m}}}`,
		"Snapshot":    `{volume: v}`,
		"StoragePool": `{rbd: {monitors: ["192.0.2.1:3300"], user: sluice, keySecretRef: {namespace: shop, name: s}, pool: rbd}}`,
		"Target":      `{gatewayPool: p}`,
		"Volume":      `{pool: p, size: 1Gi}`,
	} {
		stored[kind] = document(t, kind, "defaults", spec)
		if err := env.client.Create(t.Context(), stored[kind], client.DryRunAll); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for line := range strings.Lines(strings.TrimSpace(filledIn)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		path, want, _ := strings.Cut(rest, "=")
		var value any = stored[kind].Object
		for _, field := range strings.Split(path, ".") {
			if list, ok := value.([]any); ok {
				value = list[0]
			}
			within, _ := value.(map[string]any)
			value = within[field]
		}
		if value == nil || fmt.Sprint(value) != want {
			t.Errorf("%s %s is %v, not %q", kind, path, value, want)
		}
	}
}
