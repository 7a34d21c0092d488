package store_test

import (
	"bytes"
	"testing"

	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func TestThePrivateKeyOfTheAuthorityIsEncryptedAndFollowsTheRotationOfKeys(t *testing.T) {
	old, next := keyring.GenerateKey("old"), keyring.GenerateKey("new")
	all := rings(t, old, next+old, next, keyring.GenerateKey("other"))
	f := openWith(t, all[0])
	if certificate, _, err := f.Authority(t.Context()); err != nil || certificate != "" {
		t.Errorf("a new store has the authority %q (%v)", certificate, err)
	}
	if err := f.SetAuthority(t.Context(), "certificate", model.NewSecret("private key")); err != nil {
		t.Fatal(err)
	}
	stored, err := shared.Client.Get(t.Context(), "/sluice/"+f.name+"/authority")
	if err != nil || len(stored.Kvs) != 1 || bytes.Contains(stored.Kvs[0].Value, []byte("private key")) {
		t.Errorf("the key is in the store in the clear, or not at all: %v, %v", stored, err)
	}
	open := func(ring *keyring.Keyring) error {
		_, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: f.name, Keyring: ring, Now: f.clock.now})
		return err
	}
	wantError[*keyring.MissingKeysError](t, open(all[3]), "the certificate authority")
	if err := open(all[1]); err != nil { // the replica with the new key first encrypts it again
		t.Fatal(err)
	}
	certificate, key, err := f.reopen(all[2]).Authority(t.Context())
	if err != nil || certificate != "certificate" || key.Reveal() != "private key" {
		t.Errorf("after the rotation: %q (%v)", certificate, err)
	}
}
