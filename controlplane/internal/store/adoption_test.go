package store_test

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// adopting returns a volume that adopts an image of the pool in Ceph.
func adopting(name, image string) *model.Volume {
	return &model.Volume{Meta: model.Meta{Name: name}, Spec: model.VolumeSpec{Pool: "ceph", SizeBytes: 1 << 30,
		Source: model.VolumeSource{Image: image}}}
}

// givenUID stores a copy of a volume under another name, with a given uid.
func givenUID(f *fixture, from *model.Volume, name, uid string) {
	f.t.Helper()
	all, err := shared.Client.Get(f.t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		key := string(kv.Key)
		if !strings.Contains(key, f.name) || !strings.HasSuffix(key, "/objects/"+string(model.KindVolume)+"/"+from.Meta.Name) {
			continue
		}
		value := strings.NewReplacer(from.Meta.UID, uid, `"`+from.Meta.Name+`"`, `"`+name+`"`).Replace(string(kv.Value))
		if _, err := shared.Client.Put(f.t.Context(), strings.TrimSuffix(key, from.Meta.Name)+name, value); err != nil {
			f.t.Fatal(err)
		}
		return
	}
	f.t.Fatal("there is no", from.Meta.Name)
}

// Between the check and the transaction, another request creates a volume that owns the image.
func TestAnImageThatGetsAnOwnerBetweenCheckAndTransactionIsNotAdopted(t *testing.T) {
	const uid = "0d9bbb0b-8a2e-4a52-9f0b-1d6f0b6a7c11"
	f := open(t)
	f.prerequisites()
	must(f, f.StoragePools, &model.StoragePool{Meta: model.Meta{Name: "ceph"}, Spec: model.StoragePoolSpec{
		RBD: &model.RBDPool{Monitors: []string{"192.0.2.9:3300"}, User: "sluice", Key: model.NewSecret("k"), Pool: "rbd"}}})
	template := volume("template")
	must(f, f.Volumes, template)
	// once is called before the next transaction.
	var once func()
	way := &etcdtest.BeforeCommit{KV: shared.Client.KV, Before: func() {
		if now := once; now != nil {
			once = nil
			now()
		}
	}}
	client := clientv3.NewCtxClient(t.Context())
	client.KV, client.Lease, client.Watcher, client.Maintenance = way, shared.Client.Lease, shared.Client.Watcher, shared.Client.Maintenance
	late, err := store.Open(t.Context(), client, store.Options{Cluster: f.name, Keyring: f.ring, Now: f.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		image  string
		before func()
	}{
		"another volume adopts it":     {"golden", func() { must(f, f.Volumes, adopting("rival", "golden")) }},
		"it is another volume's image": {"volume-" + uid, func() { givenUID(f, template, "owner", uid) }},
	} {
		once = c.before
		err := late.Volumes.Create(t.Context(), adopting("late", c.image), false)
		var refused *model.PreconditionError
		if !errors.As(err, &refused) || refused.Violations[0].Field != "spec.source.image" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
