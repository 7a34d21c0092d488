package node

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

// initialised runs the preflight and all steps, as `node init` does.
func (f *fakeServer) initialised(cluster *fakeCluster, options Options) (bool, string, error) {
	f.t.Helper()
	preflight, out, count := f.preflight(options)
	if count > 0 {
		f.t.Fatalf("%d problems:\n%s", count, out)
	}
	stored := map[string]Access{}
	var said strings.Builder
	work := &Init{System: f.System, Plan: preflight.Plan, Certificates: "/root/sluice-certs",
		StoreAccess: func(access Access) (bool, error) {
			stored["default"] = access
			if f.exists("/root/context") {
				return false, nil
			}
			if err := f.change("context"); err != nil {
				return false, err
			}
			f.file("/root/context", "")
			return true, nil
		},
		Connect: func(Access) Cluster { return cluster }}
	changed, err := work.Run(f.t.Context(), &said)
	return changed, said.String(), err
}

func newFakeCluster(f *fakeServer) *fakeCluster {
	return &fakeCluster{server: f, objects: map[string]proto.Message{}}
}

// snapshot returns all files of a server with their contents.
func (f *fakeServer) snapshot() map[string]string {
	f.t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(f.Root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files[path] = f.text("/" + path)
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return files
}

func TestInitMakesTheFilesUnitsAndObjectsOfANode(t *testing.T) {
	f := newFakeServer(t)
	cluster := newFakeCluster(f)
	if changed, out, err := f.initialised(cluster, Options{Pools: []string{"/srv/one", "/srv/two"}}); err != nil || !changed {
		t.Fatalf("changed: %v, %v\n%s", changed, err, out)
	}
	if got := f.text(controlPlaneEnv); got != "# Flags\nFLAGS=\"--listen 192.0.2.1:7460 --node a --etcd-peer-address 192.0.2.1:7467 --join-listen 192.0.2.1:7468\"\n" {
		t.Errorf("%s is %q", controlPlaneEnv, got)
	}
	if got := f.text("/etc/sluice/gateway-a-2.env"); got != "FLAGS=\"--control-plane 192.0.2.1:7460 --node a --metrics 127.0.0.1:7472\"\n" {
		t.Errorf("the flags of a-2 are %q", got)
	}
	for unit, want := range map[string]bool{sampleUnit: false, controlPlaneUnit: true, "sluice-gateway@a-1.service": true, "sluice-gateway@a-2.service": true} {
		if f.units[unit] != want {
			t.Errorf("%s runs: %v", unit, f.units[unit])
		}
	}
	want := []string{"Fabric/default", "Gateway/a-1", "Gateway/a-2", "GatewayPool/default", "StoragePool/local-a", "StoragePool/local-a-2"}
	if got := slices.Sorted(maps.Keys(cluster.objects)); !slices.Equal(got, want) {
		t.Errorf("the objects are %v", got)
	}
	if !strings.HasPrefix(cluster.authority, "ca.crt of run") || !strings.Contains(cluster.authority, "ca.key of run") {
		t.Errorf("the stored authority is %q", cluster.authority)
	}
	if !cluster.waited {
		t.Error("it did not wait for gateways and pools")
	}
	for _, name := range []string{"ca.crt", "server.key", "gateway-a-1.key"} {
		if state, err := os.Stat(f.path(tlsDirectory + "/" + name)); err != nil || state.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", name, state, err)
		}
	}
	if f.exists(tlsDirectory + "/ca.key") {
		t.Error("the key of the authority is where the services read")
	}
	if state, err := os.Stat(f.path("/srv/one")); err != nil || state.Mode().Perm() != serviceMode {
		t.Errorf("the directory of the pool: %v, %v", state, err)
	}
}

func TestInitAgainChangesNothing(t *testing.T) {
	f := newFakeServer(t)
	cluster := newFakeCluster(f)
	if _, _, err := f.initialised(cluster, Options{Pools: []string{"/srv/sluice"}}); err != nil {
		t.Fatal(err)
	}
	before := f.snapshot()
	f.calls = nil
	f.file("/srv/sluice/volume-1", "data")
	before["srv/sluice/volume-1"] = "data"
	// Without flags, the earlier ones are used.
	for _, options := range []Options{{}, {Name: "a", Pools: []string{"/srv/sluice"}, Fabrics: []string{"default=192.0.2.0/24"}}} {
		changed, out, err := f.initialised(cluster, options)
		if err != nil || changed || len(f.calls) > 0 {
			t.Errorf("changed: %v, %v, %v\n%s", changed, err, f.calls, out)
		}
	}
	if !maps.Equal(before, f.snapshot()) {
		t.Error("files changed")
	}
}

func TestInitAfterAnInterruptionAtEachStepContinues(t *testing.T) {
	complete := newFakeServer(t)
	if _, _, err := complete.initialised(newFakeCluster(complete), Options{Pools: []string{"/srv/sluice"}}); err != nil {
		t.Fatal(err)
	}
	if len(complete.calls) < 9 {
		t.Fatalf("only %d calls can be interrupted", len(complete.calls))
	}
	for at := 1; at <= len(complete.calls); at++ {
		f := newFakeServer(t)
		f.failAt = at
		cluster := newFakeCluster(f)
		if _, out, err := f.initialised(cluster, Options{Pools: []string{"/srv/sluice"}}); err == nil {
			t.Fatalf("call %d did not fail:\n%s", at, out)
		}
		f.failAt = 0
		if changed, out, err := f.initialised(cluster, Options{}); err != nil || !changed {
			t.Errorf("after an interruption at %q: changed %v, %v\n%s", complete.calls[at-1], changed, err, out)
		}
		if changed, out, err := f.initialised(cluster, Options{}); err != nil || changed {
			t.Errorf("a third run: changed %v, %v\n%s", changed, err, out)
		}
		if !maps.Equal(f.units, complete.units) || !slices.Equal(slices.Sorted(maps.Keys(cluster.objects)), []string{"Fabric/default", "Gateway/a-1", "Gateway/a-2",
			"GatewayPool/default", "StoragePool/local-a"}) {
			t.Errorf("after an interruption at %q: %v, %v", complete.calls[at-1], f.units, cluster.objects)
		}
	}
}

func TestInitWithOtherFlagsThanBeforeIsRefused(t *testing.T) {
	f := newFakeServer(t)
	if _, _, err := f.initialised(newFakeCluster(f), Options{Pools: []string{"/srv/sluice"}}); err != nil {
		t.Fatal(err)
	}
	_, out, count := f.preflight(Options{Name: "b", Pools: []string{"/srv/other"}, Fabrics: []string{"red=192.0.2.0/24"}})
	if count != 3 || !strings.Contains(out, "set up with --name a, not b") || !strings.Contains(out, "--pool /srv/sluice, not /srv/other") {
		t.Errorf("%d problems:\n%s", count, out)
	}
}
