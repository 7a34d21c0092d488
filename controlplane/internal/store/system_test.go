package store_test

import (
	"testing"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func TestAStoreHasOneSystemIDFromItsFirstOpeningOn(t *testing.T) {
	f := open(t)
	id := f.SystemID()
	if !store.ValidSystemID(id) {
		t.Fatalf("system id %q", id)
	}
	if again := f.reopen(f.ring).SystemID(); again != id {
		t.Errorf("opened again it is system %q, was %q", again, id)
	}
	if other := open(t).SystemID(); other == id {
		t.Error("two stores are one system")
	}
}

func TestAStoreOfAnotherSystemIsNotOpened(t *testing.T) {
	f := open(t)
	expected := model.NewUID()
	_, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: f.name, Keyring: f.ring, SystemID: expected})
	wantError[*store.WrongSystemError](t, err, f.SystemID(), expected, "--etcd-endpoints")
}

func TestAnEmptyStoreDoesNotBecomeTheSystemThatIsExpected(t *testing.T) {
	f := open(t)
	other := "t-" + model.NewUID()
	for range 2 { // the first attempt stores nothing
		_, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: other, Keyring: f.ring, SystemID: model.NewUID()})
		wantError[*store.WrongSystemError](t, err, "belongs to no system", "Restore a backup")
	}
}

func TestABackupOfBeforeSystemIDsIsRestoredAsTheSystemThatIsNoted(t *testing.T) {
	f := open(t)
	old, id := "t-"+model.NewUID(), model.NewUID()
	if err := store.KeepSystem(t.Context(), shared.Client, old, id); err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: old, Keyring: f.ring, SystemID: id})
	if err != nil || kept.SystemID() != id {
		t.Fatalf("%v", err)
	}
	wantError[*store.WrongSystemError](t, store.KeepSystem(t.Context(), shared.Client, f.name, id), f.SystemID())
}

func TestAReplicaWithAnotherKeyFileIsRefusedWhileTheStoreHoldsNoSecret(t *testing.T) {
	f := open(t)
	for id, wanted := range map[string]func(error){
		"a": func(err error) {
			wantError[*keyring.WrongKeyError](t, err, `key "a"`, "the key check value", "key file of the others")
		},
		"b": func(err error) { wantError[*keyring.MissingKeysError](t, err, `key "a"`, "the key check value") },
	} {
		ring, err := keyring.Parse(keyring.GenerateKey(id))
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Open(t.Context(), shared.Client, store.Options{Cluster: f.name, Keyring: ring})
		wanted(err)
	}
}

// A release before the key check value stored secrets only.
func TestAReplicaWithAnotherKeyFileIsRefusedByAStoreWithoutAKeyCheckValue(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Hosts, host("web", "correct horse battery"))
	if _, err := shared.Client.Delete(t.Context(), "/sluice/"+f.name+"/key-check"); err != nil {
		t.Fatal(err)
	}
	other, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(t.Context(), shared.Client, store.Options{Cluster: f.name, Keyring: other})
	wantError[*keyring.WrongKeyError](t, err, "Host web")
	f.reopen(f.ring)
}
