package store_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func TestForwardingKeysAreTheSameForAllReplicasAndEncryptedInTheStore(t *testing.T) {
	f := open(t)
	first, err := f.RotateForwardingKeys(t.Context())
	if err != nil || len(first) != 1 {
		t.Fatalf("%d keys, %v", len(first), err)
	}
	other, err := f.reopen(f.ring).RotateForwardingKeys(t.Context())
	if err != nil || len(other) != 1 || other[0].ID != first[0].ID || other[0].Key != first[0].Key {
		t.Errorf("another replica has other keys, or %v", err)
	}
	all, err := shared.Client.Get(t.Context(), "/sluice/"+f.name+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte(first[0].Key.Reveal())
	for _, kv := range all.Kvs {
		if bytes.Contains(kv.Value, raw) || bytes.Contains(kv.Value, []byte(hex.EncodeToString(raw))) {
			t.Errorf("%s holds the key in the clear", kv.Key)
		}
	}
}

func TestForwardingKeysRotateInTime(t *testing.T) {
	f := open(t)
	first, err := f.RotateForwardingKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.clock.at = f.clock.at.Add(model.ForwardingKeyAge)
	spread, err := f.RotateForwardingKeys(t.Context())
	if err != nil || len(spread) != 2 || spread[0].ID != first[0].ID {
		t.Fatalf("the next key is not spread before it is used: %d keys, %v", len(spread), err)
	}
	f.clock.at = f.clock.at.Add(model.ForwardingKeyOverlap)
	used, err := f.RotateForwardingKeys(t.Context())
	if err != nil || used[0].ID != spread[1].ID {
		t.Errorf("the next key is not used: %v", err)
	}
}

func rings(t *testing.T, texts ...string) []*keyring.Keyring {
	t.Helper()
	var all []*keyring.Keyring
	for _, text := range texts {
		ring, err := keyring.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ring)
	}
	return all
}

func TestForwardingKeysOutliveTheKeyThatTheyWereEncryptedWith(t *testing.T) {
	old, next := keyring.GenerateKey("old"), keyring.GenerateKey("new")
	all := rings(t, old, old+next, next+old, next)
	f := openWith(t, all[0])
	first, err := f.reopen(all[0]).RotateForwardingKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, ring := range all[1:] {
		got, err := f.reopen(ring).RotateForwardingKeys(t.Context())
		if err != nil || len(got) != 1 || got[0] != first[0] {
			t.Fatalf("with keyring %d: not the key that holds, or %v", i+1, err)
		}
	}
	if got, err := f.reopen(all[3]).ForwardingKeys(t.Context()); err != nil || got[0] != first[0] {
		t.Fatalf("not the key that holds, or %v", err)
	}
}

func TestForwardingKeysAreStoredOnceForAnotherKeyAndNotAgain(t *testing.T) {
	old, next := keyring.GenerateKey("old"), keyring.GenerateKey("new")
	all := rings(t, old, next+old)
	f := openWith(t, all[0])
	if _, err := f.reopen(all[0]).RotateForwardingKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	both := f.reopen(all[1])
	var versions []int64
	for range 3 {
		if _, err := both.RotateForwardingKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := shared.Client.Get(t.Context(), "/sluice/"+f.name+"/forwarding-keys")
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, got.Kvs[0].Version)
	}
	if versions[0] != 2 || versions[2] != 2 {
		t.Errorf("stored %v times", versions)
	}
}

func TestAKeyThatIsRemovedTooEarlyIsNamedWithTheRemedy(t *testing.T) {
	old, next := keyring.GenerateKey("old"), keyring.GenerateKey("new")
	all := rings(t, old, next+old, next)
	f := openWith(t, all[0])
	forgotten := f.Store // a replica that runs on with the old key file
	if _, err := f.reopen(all[0]).RotateForwardingKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	opened := func() error {
		_, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: f.name, Keyring: all[2]})
		return err
	}
	wantError[*keyring.MissingKeysError](t, opened(), `the forwarding keys encrypted with key "old"`, "put its line back")
	if _, err := f.reopen(all[1]).RotateForwardingKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := opened(); err != nil {
		t.Fatalf("nothing is encrypted with it any more: %v", err)
	}
	replica := f.reopen(all[2])
	if _, err := shared.Client.Delete(t.Context(), "/sluice/"+f.name+"/forwarding-keys"); err != nil {
		t.Fatal(err)
	}
	if _, err := forgotten.RotateForwardingKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := replica.RotateForwardingKeys(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"old"`) || !strings.Contains(err.Error(), "put its line back") {
		t.Errorf("the replica says %v", err)
	}
}

func TestRootsOfPairwiseKeysAreNotTheSharedKeysAndRotateOnRequest(t *testing.T) {
	f := open(t)
	keys, err := f.RotateForwardingKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	roots, err := f.RotatePairRoots(t.Context())
	if err != nil || len(roots) != 1 || roots[0].Key == keys[0].Key {
		t.Fatalf("%d roots, %v", len(roots), err)
	}
	if _, err := f.reopen(f.ring).RotatePairRootsNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := f.RotatePairRoots(t.Context())
	if err != nil || len(next) != 2 || next[0].ID == roots[0].ID || next[1].ID != roots[0].ID {
		t.Errorf("%d roots after the rotation, %v", len(next), err)
	}
	if same, err := f.ForwardingKeys(t.Context()); err != nil || same[0] != keys[0] {
		t.Errorf("the shared keys rotated too: %v", err)
	}
	all, err := shared.Client.Get(t.Context(), "/sluice/"+f.name+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if bytes.Contains(kv.Value, []byte(hex.EncodeToString([]byte(next[0].Key.Reveal())))) {
			t.Errorf("%s holds a root key in the clear", kv.Key)
		}
	}
}
