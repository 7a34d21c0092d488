package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

// One etcd serves all tests; each test has a separate cluster in it.
var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

// clock is a clock that tests set.
type clock struct {
	mutex sync.Mutex
	at    time.Time
}

func (c *clock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.at
}

func (c *clock) advance(by time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.at = c.at.Add(by)
}

type fixture struct {
	*store.Store
	t     *testing.T
	clock *clock
	name  string
	ring  *keyring.Keyring
	// term elects the test when it is first called.
	term func() *store.Term
}

func open(t *testing.T) *fixture {
	t.Helper()
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, ring)
}

// openWith opens a separate store whose first key file is this one.
func openWith(t *testing.T, ring *keyring.Keyring) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: &clock{at: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}, ring: ring,
		name: "t-" + model.NewUID()}
	f.Store = f.reopen(ring)
	f.term = sync.OnceValue(func() *store.Term { return storetest.Lead(t, f.Store) })
	return f
}

func (f *fixture) reopen(ring *keyring.Keyring) *store.Store {
	f.t.Helper()
	opened, err := store.Open(f.t.Context(), shared.Client,
		store.Options{Cluster: f.name, Keyring: ring, Now: f.clock.now})
	if err != nil {
		f.t.Fatal(err)
	}
	return opened
}

// must creates objects that have to be accepted.
func must[T model.Object](f *fixture, c *store.Collection[T], objects ...T) {
	f.t.Helper()
	for _, object := range objects {
		if err := c.Create(f.t.Context(), object, false); err != nil {
			f.t.Fatalf("%s %s: %v", object.Kind(), object.Metadata().Name, err)
		}
	}
}

// prerequisites creates the objects to which others refer: fabrics, a gateway pool, a storage pool.
func (f *fixture) prerequisites() {
	must(f, f.Fabrics, &model.Fabric{Meta: model.Meta{Name: "red"}}, &model.Fabric{Meta: model.Meta{Name: "blue"}})
	must(f, f.GatewayPools, &model.GatewayPool{Meta: model.Meta{Name: "default"},
		Spec: model.GatewayPoolSpec{Fabrics: []string{"red", "blue"}}})
	must(f, f.StoragePools, &model.StoragePool{Meta: model.Meta{Name: "pool"},
		Spec: model.StoragePoolSpec{Local: &model.LocalPool{Node: "node-1", Directory: "/srv/sluice"}}})
}

func volume(name string) *model.Volume {
	return &model.Volume{Meta: model.Meta{Name: name}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 30}}
}

func gateway(number int) *model.Gateway {
	address := func(port int) string { return fmt.Sprintf("192.0.2.%d:%d", number, port) }
	return &model.Gateway{Meta: model.Meta{Name: fmt.Sprintf("gw-%d", number)}, Spec: model.GatewaySpec{
		GatewayPool: "default", Node: "node-1", ForwardingAddress: address(3261),
		Portals: []model.Portal{{Listen: address(3260), Fabric: "red"}, {Listen: address(3262), Fabric: "blue"}}}}
}

func target(name string, luns ...model.TargetLun) *model.Target {
	return &model.Target{Meta: model.Meta{Name: name}, Spec: model.TargetSpec{GatewayPool: "default", Luns: luns}}
}

func host(name, password string) *model.Host {
	return &model.Host{Meta: model.Meta{Name: name}, Spec: model.HostSpec{
		Initiators: []string{"iqn.2026-11.org.example:" + name},
		Chap:       &model.ChapCredentials{Password: model.NewSecret(password)}}}
}

// wantError asserts an error of a type whose text contains all the words.
func wantError[E error](t *testing.T, err error, words ...string) {
	t.Helper()
	var as E
	if !errors.As(err, &as) {
		t.Fatalf("got error %v (%T), wanted a %T", err, err, as)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not mention %q", err, word)
		}
	}
}

// raw returns everything that the test's cluster stores, as text.
func (f *fixture) raw() string {
	got, err := shared.Client.Get(f.t.Context(), "/sluice/"+f.name+"/", clientv3.WithPrefix())
	if err != nil {
		f.t.Fatal(err)
	}
	var all strings.Builder
	for _, kv := range got.Kvs {
		fmt.Fprintf(&all, "%s=%s\n", kv.Key, kv.Value)
	}
	return all.String()
}

func TestAnInvalidStoredValueIsAnErrorAndNotAnEmptyObject(t *testing.T) {
	f := open(t)
	for _, value := range []string{"", "{}", `{"object":null}`, `{"object":[]}`, `{"secrets":[]}`} {
		key := "/sluice/" + f.name + "/objects/" + string(model.KindVolume) + "/broken"
		if _, err := shared.Client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
		if object, err := f.Volumes.Get(t.Context(), "broken"); err == nil {
			t.Errorf("%q is taken for %v", value, object)
		}
	}
}
