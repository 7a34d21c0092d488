package store_test

import (
	"encoding/json"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

// forget deletes fields of a stored object's spec, as a release that did not know them would have stored it.
func (f *fixture) forget(kind model.Kind, name string, fields ...string) {
	f.t.Helper()
	key := "/sluice/" + f.name + "/objects/" + string(kind) + "/" + name
	got, err := shared.Client.Get(f.t.Context(), key)
	if err != nil || len(got.Kvs) != 1 {
		f.t.Fatalf("%s: %d values, %v", key, len(got.Kvs), err)
	}
	var stored map[string]any
	if err := json.Unmarshal(got.Kvs[0].Value, &stored); err != nil {
		f.t.Fatal(err)
	}
	spec := stored["object"].(map[string]any)["spec"].(map[string]any)
	for _, field := range fields {
		if _, has := spec[field]; !has {
			f.t.Errorf("%s %s is stored without spec.%s at once", kind, name, field)
		}
		delete(spec, field)
	}
	value, err := json.Marshal(stored)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := shared.Client.Put(f.t.Context(), key, string(value)); err != nil {
		f.t.Fatal(err)
	}
}

// Every reader gets the default, even of an object that was stored without the field.
func TestAnObjectThatIsStoredWithoutAFieldHasItsDefault(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	must(f, f.Gateways, gateway(1))
	must(f, f.Targets, target("db"))
	must(f, f.Hosts, host("web", "open-sesame-123"))
	must(f, f.Snapshots, &model.Snapshot{Meta: model.Meta{Name: "then"}, Spec: model.SnapshotSpec{Volume: "orders"}})
	f.forget(model.KindFabric, "red", "switches")
	f.forget(model.KindGatewayPool, "default", "maxSessionsPerGateway")
	f.forget(model.KindGateway, "gw-1", "weight")
	f.forget(model.KindStoragePool, "pool", "warnPercent")
	f.forget(model.KindVolume, "orders", "blockSize", "reclaimPolicy")
	f.forget(model.KindTarget, "db", "iqn", "paths")
	f.forget(model.KindHost, "web", "maxSessions")
	f.forget(model.KindSnapshot, "then", "reclaimPolicy")

	want := func(what string, got, wanted any, err error) {
		t.Helper()
		if err != nil || got != wanted {
			t.Errorf("%s is %v, not %v (%v)", what, got, wanted, err)
		}
	}
	red, err := f.Fabrics.Get(t.Context(), "red")
	want("the only switch", len(red.Spec.Switches) == 1 && red.Spec.Switches[0] == "red", true, err)
	pool, err := f.GatewayPools.Get(t.Context(), "default")
	want("maxSessionsPerGateway", pool.Spec.MaxSessionsPerGateway, int32(4096), err)
	gw, err := f.Gateways.Get(t.Context(), "gw-1")
	want("weight", gw.Spec.Weight, int32(100), err)
	storage, err := f.StoragePools.Get(t.Context(), "pool")
	want("warnPercent", storage.Spec.WarnPercent, int32(85), err)
	orders, err := f.Volumes.Get(t.Context(), "orders")
	want("blockSize", orders.Spec.BlockSize, int32(512), err)
	want("reclaimPolicy", orders.Spec.ReclaimPolicy, model.ReclaimDelete, err)
	want("writeCache", orders.Spec.WriteCache, false, err)
	db, err := f.Targets.Get(t.Context(), "db")
	want("iqn", db.Spec.IQN, "iqn.2026-11.dev.sluice:db", err)
	want("paths", db.Spec.Paths, int32(2), err)
	web, err := f.Hosts.Get(t.Context(), "web")
	want("maxSessions", web.Spec.MaxSessions, int32(64), err)
	then, err := f.Snapshots.Get(t.Context(), "then")
	want("reclaimPolicy", then.Spec.ReclaimPolicy, model.ReclaimDelete, err)
}
