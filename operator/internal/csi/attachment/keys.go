package attachment

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// The controller and each node have an X25519 key pair (RFC 7748). A node's CHAP secret is derived from the Diffie-Hellman value of
// both pairs, so only public keys pass through Kubernetes objects: the node's in its CSI node id, the driver's in publish contexts.

// secretBytes of a CHAP secret are 16 characters: 96 bits of base64. Windows accepts 12 to 16 bytes without IPsec (RFC 7143 §9.2.1
// requires support for at least 96 bits).
const secretBytes = 12

// publicKeyCharacters is the length of 32 bytes in base64url.
const publicKeyCharacters = 43

// purpose separates this use of the Diffie-Hellman value from other uses.
const purpose = "sluice csi node CHAP secret, version 1"

// NewPrivateKey generates a key pair, as text for a file or a Secret.
func NewPrivateKey() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails (crypto/rand)
	return base64.StdEncoding.EncodeToString(key[:]) + "\n"
}

// ParsePrivateKey reads the text that NewPrivateKey returns. The error does not repeat the text.
func ParsePrivateKey(text string) (*ecdh.PrivateKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != 32 {
		return nil, errors.New("the key is not 32 bytes in base64; make one by `openssl rand -base64 32`")
	}
	return ecdh.X25519().NewPrivateKey(key)
}

// EncodePublicKey returns a public key as 43 characters of base64url, which are valid in a CSI node id and a publish context.
func EncodePublicKey(key *ecdh.PublicKey) string {
	return base64.RawURLEncoding.EncodeToString(key.Bytes())
}

// ParsePublicKey reads the text that EncodePublicKey returns.
func ParsePublicKey(text string) (*ecdh.PublicKey, error) {
	key, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("key %.60q is not base64url", text)
	}
	public, err := ecdh.X25519().NewPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("key %.60q is not an X25519 public key of 32 bytes", text)
	}
	return public, nil
}

// NodeCHAP derives a node's credentials on the controller, from the driver's private key and the node's public key.
func NodeCHAP(driver *ecdh.PrivateKey, node Node) (CHAP, error) {
	public, err := ParsePublicKey(node.Key)
	if err != nil {
		return CHAP{}, fmt.Errorf("node %s: %w", node.Name, err)
	}
	return deriveCHAP(driver, public, EncodePublicKey(driver.PublicKey()), node)
}

// OwnCHAP derives the same credentials on the node, from its private key and the driver's public key.
func OwnCHAP(own *ecdh.PrivateKey, driver string, name, initiator string) (CHAP, error) {
	public, err := ParsePublicKey(driver)
	if err != nil {
		return CHAP{}, fmt.Errorf("publish context: %w", err)
	}
	return deriveCHAP(own, public, driver, Node{Name: name, Initiator: initiator, Key: EncodePublicKey(own.PublicKey())})
}

// deriveCHAP returns initiator name and secret. Both public keys and both names are inputs of the derivation, so another node, or
// the same node with another initiator name, has another secret.
func deriveCHAP(private *ecdh.PrivateKey, public *ecdh.PublicKey, driver string, node Node) (CHAP, error) {
	shared, err := private.ECDH(public)
	if err != nil {
		return CHAP{}, fmt.Errorf("node %s: %w", node.Name, err) // the public key has low order
	}
	secret, err := hkdf.Key(sha256.New, shared, nil, strings.Join([]string{purpose, driver, node.Key, node.Name, node.Initiator}, "\n"),
		secretBytes)
	if err != nil {
		return CHAP{}, err
	}
	return CHAP{Own: &Credentials{User: node.Initiator, Secret: base64.RawURLEncoding.EncodeToString(secret)}}, nil
}
