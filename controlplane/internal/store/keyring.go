package store

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

// Keyring encrypts secrets at rest with AES-256-GCM. Its first key encrypts, all of them decrypt. To rotate a key
//
//  1. put the new one behind the others, and restart all replicas: from then on they all can decrypt what it encrypts (one replica
//     alone needs no such step);
//  2. put it in front, and restart all replicas: they encrypt with it, and the forwarding keys, which nobody else writes, within
//     half a minute;
//  3. write every host and pool once, as `sluicectl host list -o yaml | sluicectl apply -f -` and the same with `pool` do (an update
//     without the secret keeps it);
//  4. take the old one out, and restart the replicas, one first: while anything is encrypted with the old one, it does not start, and
//     says what that is.
type Keyring struct {
	ids  []string
	aead map[string]cipher.AEAD
}

// KeySize is the length of a key in bytes.
const KeySize = 32

// maxKeys bounds a key file.
const maxKeys = 16

// private says that a file is for its owner alone; one of root's may be read by a group, too, for a process that is not root:
// that is how a pod is given a Secret.
func private(info os.FileInfo, user int) bool {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == 0 && user != 0 {
		return info.Mode().Perm()&0o037 == 0
	}
	return info.Mode().Perm()&0o077 == 0
}

// ReadKeyring reads a file of lines `<id>:<32 bytes in base64>`, the newest key first. Empty lines and
// lines that begin with # are left out. Only its owner may read the file, or a group if it is root's and the process is not.
func ReadKeyring(path string) (*Keyring, error) {
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
	ring, err := ParseKeyring(string(text))
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return ring, nil
}

// ParseKeyring reads what ReadKeyring reads, from text.
func ParseKeyring(text string) (*Keyring, error) {
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

// newest says that a secret is encrypted with the key that encrypts now.
func (k *Keyring) newest(secret sealed) bool { return secret.Key == "" || secret.Key == k.ids[0] }

// sealed is a secret as it is stored.
type sealed struct {
	Key  string `json:"key,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// seal encrypts; place binds the text to where it is stored, so that it opens nowhere else.
func (k *Keyring) seal(text, place string) sealed {
	if text == "" {
		return sealed{}
	}
	aead := k.aead[k.ids[0]]
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce)
	return sealed{Key: k.ids[0], Data: aead.Seal(nonce, nonce, []byte(text), []byte(place))}
}

var errSealBroken = errors.New("does not decrypt: the store was changed by hand, or the key file is another system's")

func (k *Keyring) open(secret sealed, place string) (string, error) {
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
	text, err := aead.Open(nil, nonce, data, []byte(place))
	if err != nil {
		return "", errSealBroken
	}
	return string(text), nil
}
