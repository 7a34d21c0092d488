package simtest

import (
	"sync"

	"sluice.dev/sluice/controlplane/internal/keyring"
)

// newKeys returns a key file with one key. All such keys have the same id, so only decryption distinguishes them.
func newKeys() *keyring.Keyring {
	keys, err := keyring.Parse(keyring.GenerateKey("k1"))
	if err != nil {
		panic(err)
	}
	return keys
}

// systemKeys encrypted the secrets of the store; otherKeys belong to another system.
var systemKeys, otherKeys = sync.OnceValue(newKeys), sync.OnceValue(newKeys)

const keyCheckPlace = "key-check"

// fits reports whether keys decrypt the secrets of a store, which a replica checks before it serves.
func fits(keys *keyring.Keyring, of *memory) bool {
	_, err := keys.CheckValue(of.keyCheck, keyCheckPlace)
	return err == nil
}

// startReplicaWithOtherKeys starts a replica whose key file is another system's. It ends before it can be elected.
func (w *Simulation) startReplicaWithOtherKeys() {
	if !fits(otherKeys(), w.store) && w.broken != NoKeyCheck {
		return
	}
	w.elect()
	w.leaders[len(w.leaders)-1].keys = otherKeys()
}

// deliverSecrets makes a gateway take the secrets of hosts from the replica of its stream.
func (w *Simulation) deliverSecrets(p *process) {
	if w.identity != nil && p.stream {
		p.secrets = w.leaders[w.identity.random.IntN(len(w.leaders))].keys
	}
}
