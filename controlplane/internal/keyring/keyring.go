// Package keyring encrypts the secrets of a store, checks whether a key file belongs to a store, and reads key files.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Keyring encrypts stored secrets with AES-256-GCM. Its first key encrypts; every key decrypts. To rotate a key:
//
//  1. Add the new key behind the others and restart all replicas, so that every replica can decrypt with it. A single replica does not
//     need this step.
//  2. Move the new key to the front and restart all replicas. They encrypt with it from then on, and encrypt the forwarding keys again
//     within half a minute.
//  3. Write every host and pool once, for example with `sluicectl host list -o yaml | sluicectl apply -f -` and the same for `pool`.
//     An update without the secret preserves the secret.
//  4. Remove the old key and restart the replicas, one first. While a secret is encrypted with the old key, that replica does not start
//     and names the secret.
type Keyring struct {
	ids  []string
	aead map[string]cipher.AEAD
	// lines of the key file, newest key first.
	lines []string
}

// KeySize is the length of a key in bytes.
const KeySize = 32

// maxKeys bounds the keys of a key file.
const maxKeys = 16

// private reports whether only the owner of a file can read it. If root owns the file and the process is not root, its group may
// read it too: Kubernetes mounts a Secret in a pod that way.
func private(info os.FileInfo, user int) bool {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == 0 && user != 0 {
		return info.Mode().Perm()&0o037 == 0
	}
	return info.Mode().Perm()&0o077 == 0
}

// Read reads a file of lines `<id>:<32 bytes in base64>`, the newest key first. It ignores empty lines and lines that begin with #.
// It refuses a file that is not private.
func Read(path string) (*Keyring, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	if !private(info, os.Getuid()) {
		return nil, fmt.Errorf("key file %s has mode %#o: others can read it; chmod 600", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	ring, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return ring, nil
}

// Parse parses the text of a key file.
func Parse(text string) (*Keyring, error) {
	ring := &Keyring{aead: map[string]cipher.AEAD{}}
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, encoded, whole := strings.Cut(line, ":")
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if !whole || id == "" || err != nil || len(key) != KeySize {
			return nil, fmt.Errorf("line %d is not `<id>:<%d bytes in base64>`", number+1, KeySize)
		}
		if _, twice := ring.aead[id]; twice {
			return nil, fmt.Errorf("line %d gives key %q a second time", number+1, id)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if ring.aead[id], err = cipher.NewGCM(block); err != nil {
			return nil, err
		}
		ring.ids = append(ring.ids, id)
		ring.lines = append(ring.lines, line)
	}
	if len(ring.ids) == 0 || len(ring.ids) > maxKeys {
		return nil, fmt.Errorf("holds %d keys; 1 to %d are possible", len(ring.ids), maxKeys)
	}
	return ring, nil
}

// GenerateKey returns a line for a key file.
func GenerateKey(id string) string {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return id + ":" + base64.StdEncoding.EncodeToString(key) + "\n"
}

// Text returns the text of a key file with the keys.
func (k *Keyring) Text() string { return strings.Join(k.lines, "\n") + "\n" }

// Has reports whether the keyring has a key with this id.
func (k *Keyring) Has(id string) bool { return k.aead[id] != nil }

// Newest reports whether a secret is empty or encrypted with the first key.
func (k *Keyring) Newest(secret Sealed) bool { return secret.Key == "" || secret.Key == k.ids[0] }

// Sealed is an encrypted secret. The zero value is an empty secret.
type Sealed struct {
	Key  string `json:"key,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// Seal encrypts a secret. Open succeeds with the same binding only, so a secret that is copied to another object does not decrypt.
func (k *Keyring) Seal(text, binding string) Sealed {
	if text == "" {
		return Sealed{}
	}
	aead := k.aead[k.ids[0]]
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	return Sealed{Key: k.ids[0], Data: aead.Seal(nonce, nonce, []byte(text), []byte(binding))}
}

var errSealBroken = errors.New("does not decrypt: the store was changed by hand, or the key file is another system's")

// Open decrypts a secret that Seal encrypted with this binding.
func (k *Keyring) Open(secret Sealed, binding string) (string, error) {
	if secret.Key == "" {
		return "", nil
	}
	aead := k.aead[secret.Key]
	if aead == nil {
		return "", fmt.Errorf("is encrypted with key %q, which the key file does not have: %s", secret.Key, putKeyBack)
	}
	if len(secret.Data) < aead.NonceSize() {
		return "", errSealBroken
	}
	nonce, data := secret.Data[:aead.NonceSize()], secret.Data[aead.NonceSize():]
	text, err := aead.Open(nil, nonce, data, []byte(binding))
	if err != nil {
		return "", errSealBroken
	}
	return string(text), nil
}
