package main

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

const samples = "../../../operator/config/samples/"

// errorsOf returns what a command prints on standard error, and its error.
func (l *live) errorsOf(arguments ...string) (string, error) {
	r := l.begin(context.Background(), arguments...)
	err := <-r.ended
	return r.err.String(), err
}

// sampled applies every sample of the operator, in the order of their names.
func (l *live) sampled() {
	l.t.Helper()
	files, err := filepath.Glob(samples + "sluice_v1alpha1_*.yaml")
	if err != nil || len(files) == 0 {
		l.t.Fatalf("%d samples, %v", len(files), err)
	}
	arguments := []string{"apply", "-f", samples + "secrets/secrets.yaml"}
	for _, file := range files {
		arguments = append(arguments, "-f", file)
	}
	output, err := l.errorsOf(arguments...)
	if err != nil {
		l.t.Fatalf("%v\n%s", err, output)
	}
	if strings.Contains(output, "deprecated") || strings.Count(output, "only the operator uses") != 2 {
		l.t.Errorf("the output is %s", output)
	}
}

func TestEverySampleOfTheOperatorIsApplied(t *testing.T) {
	l := start(t)
	l.sampled()
	for noun, names := range map[string][]string{"fabric": {"red", "blue"}, "gatewaypool": {"gateways"}, "gateway": {"gateways-0"},
		"pool": {"ceph", "nvme-storage-1"}, "volume": {"default.orders", "default.orders-test"}, "snapshot": {"default.orders-monday"},
		"host": {"default.database-1"}, "target": {"default.orders"}} {
		for _, name := range names {
			l.must(noun, "get", name)
		}
	}
	host, err := l.Hosts.Get(t.Context(), "default.database-1")
	if err != nil || host.Spec.Chap.Password.Reveal() != "replace-this-1" {
		t.Errorf("the password of the Secret was not given: %v, %v", host, err)
	}
	gateway, err := l.Gateways.Get(t.Context(), "gateways-0")
	if err != nil || gateway.Spec.Portals[1].Advertised != "198.51.100.11:3260" || gateway.Spec.ForwardingAddress != "203.0.113.11:3261" {
		t.Errorf("%+v, %v", gateway.Spec, err)
	}
}

// counted are the fields that each write increments. Nothing else may change.
var counted = regexp.MustCompile(`"(resourceVersion|generation)": "\d+",?\n`)

func TestApplyingAPrintedObjectChangesNothing(t *testing.T) {
	l := start(t)
	l.prerequisites() // objects without a namespace
	l.sampled()
	l.shop()
	l.must("snapshot", "create", "monday", "--volume", "orders")
	l.must("fabric", "create", "mesh", "--switch", "a", "--switch", "b", "--link", "a:b=4")
	modify(l, "default.orders", func(o *model.Target) { // as the operator creates them
		o.Meta.Labels = map[string]string{"sluice.dev/resource": "default/orders", "sluice.dev/uid": "u"}
	})
	for _, noun := range changeableNouns() {
		before := counted.ReplaceAllString(l.must(noun, "list", "-o", "json"), "")
		printed := file(t, l.must(noun, "list", "-o", "yaml"))
		output, err := l.errorsOf("apply", "-f", printed)
		if err != nil || output != "" {
			t.Errorf("%s: %v\n%s", noun, err, output)
		}
		if after := counted.ReplaceAllString(l.must(noun, "list", "-o", "json"), ""); after != before {
			t.Errorf("%s:\n%s\nbecame\n%s", noun, before, after)
		}
		for _, name := range strings.Fields(column0(l.must(noun, "list"))) {
			text := l.must(noun, "get", name, "-o", "yaml")
			if !strings.HasPrefix(text, "apiVersion: sluice.dev/v1alpha1\nkind: ") || !strings.Contains(text, "\nmetadata:\n") {
				t.Errorf("%s %s is no resource:\n%s", noun, name, text)
			}
			if out := l.must("apply", "-f", file(t, text)); !strings.Contains(out, noun+" "+name+" unchanged") {
				t.Errorf("%s %s: %s", noun, name, out)
			}
		}
	}
	if text := l.must("target", "get", "default.orders", "-o", "yaml"); !strings.Contains(text, "namespace: default") ||
		!strings.Contains(text, "volume: orders\n") {
		t.Errorf("an object of the operator is not the resource that it was made of:\n%s", text)
	}
}

// column0 returns the first column of a table, without its title.
func column0(table string) string {
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		names = append(names, strings.Fields(line)[0])
	}
	return strings.Join(names, " ")
}

func TestAFileOfTheDeprecatedFormatIsAppliedWithOneNote(t *testing.T) {
	l := start(t)
	text := goodFabric + "---\n" + strings.Replace(goodFabric, "good", "other", 1)
	r := l.begin(t.Context(), "apply", "-f", file(t, text), "-f", file(t, strings.Replace(goodFabric, "good", "third", 1)))
	if err := <-r.ended; err != nil || strings.Count(r.out.String(), "created") != 3 {
		t.Errorf("%v: %s", err, r.out)
	}
	if output := r.err.String(); strings.Count(output, "\n") != 1 || !strings.HasPrefix(output, "note: apiVersion sluice.dev/v1 with meta is deprecated") {
		t.Errorf("the output is %s", output)
	}
}

func TestASecretThatNoFileHasIsNamed(t *testing.T) {
	l := start(t)
	_, err := l.run("apply", "-f", samples+"sluice_v1alpha1_host.yaml")
	const word = `spec.chap.secretRef names the key "password" of the Secret default/database-1-chap`
	if exitCode(err) != exitUsage || !strings.Contains(reported(err), word) {
		t.Errorf("%v", err)
	}
}

func TestAnObjectOfKubernetesIsForKubectl(t *testing.T) {
	for _, text := range []string{"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]\n"} {
		if _, err := readObjects("-", strings.NewReader(text)); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "kubectl") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestObjectsAreAppliedAfterThoseThatTheyName(t *testing.T) {
	var texts []string
	for _, object := range []string{"Target, metadata: {name: t}, spec: {gatewayPool: g, luns: [{id: 0, volume: copy}], hosts: [h]}",
		"Volume, metadata: {name: copy}, spec: {pool: p, size: 1Gi, source: {snapshot: s}}", "Snapshot, metadata: {name: s}, spec: {volume: v}",
		"Volume, metadata: {name: v}, spec: {pool: p, size: 1Gi}", "StoragePool, metadata: {name: p}, spec: {local: {node: node-1, directory: /d}}",
		"Host, metadata: {name: h}, spec: {initiators: [i], allowUnauthenticated: true, switches: [{fabric: f, switch: f}]}",
		"GatewayPool, metadata: {name: g}, spec: {portals: [{fabric: f}]}", "Fabric, metadata: {name: f}"} {
		texts = append(texts, "{apiVersion: sluice.dev/v1alpha1, kind: "+object+"}\n")
	}
	objects, err := readObjects("-", strings.NewReader(strings.Join(texts, "---\n")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range ordered(objects) {
		names = append(names, metaOf(object.message).GetName())
	}
	if want := []string{"f", "g", "h", "p", "v", "s", "copy", "t"}; !slices.Equal(names, want) {
		t.Errorf("%v, not %v", names, want)
	}
}
