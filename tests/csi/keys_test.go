package csi_test

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

// driverKey is the controller's key, of 32 bytes.
const driverKey = "ZHJpdmVyIGtleSBvZiB0aGUgdGVzdHMgb2YgQ1NJISE="

func initiatorOf(node string) string { return "iqn.2026-11.dev.sluice:csi-" + node }

// nodeKey returns a node's private key.
func nodeKey(node string) *ecdh.PrivateKey {
	seed := sha256.Sum256([]byte(node))
	key, err := ecdh.X25519().NewPrivateKey(seed[:])
	if err != nil {
		panic(err)
	}
	return key
}

// announced returns the id of a node that has a key.
func announced(node string, key *ecdh.PrivateKey) string {
	return node + "/" + initiatorOf(node) + "/" + base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
}

// nodeID returns the id that a node's plugin gives kubelet: name, initiator name, public key.
func nodeID(node string) string { return announced(node, nodeKey(node)) }

func secretOf(t *testing.T, node string, found map[string]string) string {
	t.Helper()
	return derived(t, node, nodeKey(node), found)
}

// derived returns the CHAP secret of a node with a key, from the publish context of a volume, as operator/internal/csi/README.md
// describes it.
func derived(t *testing.T, node string, own *ecdh.PrivateKey, found map[string]string) string {
	t.Helper()
	key, err := base64.RawURLEncoding.DecodeString(found["driver-key"])
	if err != nil {
		t.Fatal(err)
	}
	public, err := ecdh.X25519().NewPublicKey(key)
	if err != nil {
		t.Fatalf("the publish context has no key of the driver: %v", found)
	}
	shared, err := own.ECDH(public)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"sluice csi node CHAP secret, version 1", found["driver-key"],
		base64.RawURLEncoding.EncodeToString(own.PublicKey().Bytes()), node, initiatorOf(node)}
	secret, err := hkdf.Key(sha256.New, shared, nil, strings.Join(words, "\n"), 12)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(secret)
}

// inquires reads a volume's VPD page 83h through a portal, as a node does, with a CHAP secret or without one.
func inquires(node, secret string, found map[string]string) error {
	portal, _, _ := strings.Cut(found["portals"], ",")
	by := ""
	if secret != "" {
		by = initiatorOf(node) + "%" + secret + "@"
	}
	return exec.Command("iscsi-inq", "-i", initiatorOf(node), "-e", "1", "-c", "131",
		"iscsi://"+by+portal+"/"+found["iqn"]+"/"+found["lun"]).Run()
}

// The initiator name alone gives access to no volume, and no node's secret gives access as another node.
func TestEachNodeLogsInWithItsOwnSecretOnly(t *testing.T) {
	one := published(t, create(t, "chap-one", alone, nil), nodeID("node-20"), alone)
	two := published(t, create(t, "chap-two", alone, nil), nodeID("node-21"), alone)
	own, other := secretOf(t, "node-20", one), secretOf(t, "node-21", two)
	if own == other {
		t.Errorf("both nodes have the secret %s", own)
	}
	for what, attempt := range map[string]struct {
		secret  string
		succeed bool
	}{"its own secret": {own, true}, "no secret": {"", false}, "another node's secret": {other, false}} {
		if err := inquires("node-20", attempt.secret, one); (err == nil) != attempt.succeed {
			t.Errorf("with %s: %v", what, err)
		}
	}
	host, err := env.Control(t.Context(), "host", "get", "csi.node-20", "-o", "json")
	var stored struct {
		Spec struct {
			AllowUnauthenticated bool
			Chap                 struct{ PasswordSet bool }
		}
	}
	if err == nil {
		err = json.Unmarshal(host, &stored)
	}
	if err != nil || stored.Spec.AllowUnauthenticated || !stored.Spec.Chap.PasswordSet {
		t.Errorf("the Host: %s, %v", host, err)
	}
}

func TestANodeThatHasAnnouncedNoKeyIsPublishedNothingWithoutAClassSecret(t *testing.T) {
	id := create(t, "keyless", alone, nil)
	_, err := publish(t, id, "node-22/"+initiatorOf("node-22"), alone, nil)
	refused(t, err, codes.Unavailable, "no CHAP key")
	if _, err := publish(t, id, nodeID("node-22"), alone, nil); err != nil { // its plugin has registered again
		t.Error(err)
	}
}
