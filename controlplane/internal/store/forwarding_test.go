package store_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
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
