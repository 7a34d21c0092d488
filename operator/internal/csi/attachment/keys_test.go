package attachment

import (
	"strings"
	"testing"
)

func pair(t *testing.T) (node Node, own, driver string) {
	t.Helper()
	own, driver = NewPrivateKey(), NewPrivateKey()
	key, err := ParsePrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return Node{Name: "n1", Initiator: "iqn.one", Key: EncodePublicKey(key.PublicKey())}, own, driver
}

func derived(t *testing.T, driver string, node Node) Credentials {
	t.Helper()
	key, err := ParsePrivateKey(driver)
	if err != nil {
		t.Fatal(err)
	}
	chap, err := NodeCHAP(key, node)
	if err != nil {
		t.Fatal(err)
	}
	return *chap.Own
}

func TestControllerAndNodeDeriveTheSameSecret(t *testing.T) {
	node, own, driver := pair(t)
	private, _ := ParsePrivateKey(own)
	controller, _ := ParsePrivateKey(driver)
	onNode, err := OwnCHAP(private, EncodePublicKey(controller.PublicKey()), node.Name, node.Initiator)
	if err != nil || *onNode.Own != derived(t, driver, node) {
		t.Errorf("the node derives %v, %v; the controller %v", onNode.Own, err, derived(t, driver, node))
	}
}

// Windows accepts 12 to 16 bytes. The characters must be valid in a shell, a file of open-iscsi and a form.
func TestADerivedSecretHasSixteenPrintableCharacters(t *testing.T) {
	node, _, driver := pair(t)
	got := derived(t, driver, node)
	if len(got.Secret) != 16 || strings.Trim(got.Secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("the secret is %q", got.Secret)
	}
	if got.User != node.Initiator {
		t.Errorf("the CHAP name is %q", got.User)
	}
}

func TestEachNodeInitiatorAndKeyHasASecretOfItsOwn(t *testing.T) {
	node, _, driver := pair(t)
	_, _, otherDriver := pair(t)
	seen := map[string]string{}
	for what, c := range map[string]struct {
		driver string
		node   Node
	}{
		"the node":               {driver, node},
		"another driver key":     {otherDriver, node},
		"another name":           {driver, Node{"n2", node.Initiator, node.Key}},
		"another initiator name": {driver, Node{node.Name, "iqn.two", node.Key}},
		"another node key":       {driver, Node{node.Name, node.Initiator, func() string { other, _, _ := pair(t); return other.Key }()}},
	} {
		secret := derived(t, c.driver, c.node).Secret
		if seen[secret] != "" {
			t.Errorf("%s has the secret of %s", what, seen[secret])
		}
		seen[secret] = what
	}
}

func TestKeysThatAreNoneAreRefusedWithoutRepeatingAPrivateOne(t *testing.T) {
	private := strings.TrimSpace(NewPrivateKey())
	if _, err := ParsePrivateKey(private + "AA=="); err == nil || strings.Contains(err.Error(), private) {
		t.Errorf("a private key that is too long: %v", err)
	}
	driver, _ := ParsePrivateKey(private)
	for _, key := range []string{"", "short", strings.Repeat("A", 43)} { // the last one has low order
		if chap, err := NodeCHAP(driver, Node{"n1", "iqn.one", key}); err == nil {
			t.Errorf("key %q gives %v", key, chap.Own)
		}
	}
}

func TestANodeIDHoldsTheKeyAndReadsWithoutOne(t *testing.T) {
	node, _, _ := pair(t)
	for _, other := range []Node{node, {Name: "n1", Initiator: "iqn.one"}} {
		id, err := other.ID()
		if err != nil {
			t.Fatal(err)
		}
		if read, err := ParseNode(id); err != nil || read != other || WithoutKey(id) != "n1/iqn.one" {
			t.Errorf("%s is read as %v, %v; without key %s", id, read, err, WithoutKey(id))
		}
	}
	for _, id := range []string{"n1", "n1/", "/iqn", "n1/iqn/"} {
		if read, err := ParseNode(id); err == nil {
			t.Errorf("%q is read as %v", id, read)
		}
	}
}

func TestAPublishContextHoldsTheDriversPublicKey(t *testing.T) {
	a := Attachment{IQN: "iqn.t", LUN: 1, NAA: "3000000000000005", Portals: []string{"10.0.0.1:3260"}, DriverKey: "key"}
	if read, err := Read(a.Context()); err != nil || read.DriverKey != "key" {
		t.Errorf("%v, %v", read, err)
	}
	a.DriverKey = ""
	if _, ok := a.Context()[keyDriver]; ok {
		t.Error("a context without key has one")
	}
}
