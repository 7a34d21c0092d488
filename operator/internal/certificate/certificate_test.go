package certificate_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sluice.dev/sluice/operator/internal/certificate"
)

var gatewayLeaf = certificate.Leaf{CommonName: "gw-0", Role: "gateway"}

func authority(t *testing.T) (*certificate.Authority, map[string][]byte) {
	t.Helper()
	data, err := certificate.Make()
	if err != nil {
		t.Fatal(err)
	}
	a, err := certificate.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return a, data
}

func issue(t *testing.T, a *certificate.Authority, leaf certificate.Leaf, at time.Time) map[string][]byte {
	t.Helper()
	data, err := a.Issue(leaf, at)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parsed(t *testing.T, data map[string][]byte) (*x509.Certificate, *x509.CertPool) {
	t.Helper()
	pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data["ca.crt"]) {
		t.Fatal("ca.crt holds no certificate")
	}
	return pair.Leaf, pool
}

func TestAnIssuedCertificateProvesItsRole(t *testing.T) {
	a, _ := authority(t)
	for _, c := range []struct {
		leaf  certificate.Leaf
		usage x509.ExtKeyUsage
		host  string
	}{
		{gatewayLeaf, x509.ExtKeyUsageClientAuth, ""},
		{certificate.Leaf{CommonName: "sluice-controlplane", Role: "server", Hosts: []string{"*.peers.ns.svc"}},
			x509.ExtKeyUsageServerAuth, "controlplane-0.peers.ns.svc"},
	} {
		leaf, pool := parsed(t, issue(t, a, c.leaf, time.Now()))
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: c.host, KeyUsages: []x509.ExtKeyUsage{c.usage}}); err != nil {
			t.Errorf("%s: %v", c.leaf.CommonName, err)
		}
		if leaf.Subject.CommonName != c.leaf.CommonName || leaf.Subject.Organization[0] != "sluice:"+c.leaf.Role {
			t.Errorf("it is %s's", leaf.Subject)
		}
	}
}

func TestACertificateIsRenewedWhenAThirdOfItsTimeIsLeftOrItDiffers(t *testing.T) {
	a, _ := authority(t)
	other, _ := authority(t)
	now := time.Now()
	data := issue(t, a, gatewayLeaf, now)
	if a.Due(data, gatewayLeaf, now) || a.Due(data, gatewayLeaf, now.Add(certificate.Lifetime*2/3-time.Hour)) {
		t.Error("a fresh one is due")
	}
	if !a.Due(data, gatewayLeaf, now.Add(certificate.Lifetime*2/3+time.Hour)) {
		t.Error("one with less than a third left is not due")
	}
	for what, leaf := range map[string]certificate.Leaf{
		"another name": {CommonName: "gw-1", Role: "gateway"}, "another role": {CommonName: "gw-0", Role: "admin"},
		"another host": {CommonName: "gw-0", Role: "gateway", Hosts: []string{"h"}},
	} {
		if !a.Due(data, leaf, now) {
			t.Errorf("%s: not due", what)
		}
	}
	if !other.Due(data, gatewayLeaf, now) {
		t.Error("one of another authority is not due")
	}
	if !a.Due(nil, gatewayLeaf, now) {
		t.Error("an empty Secret is not due")
	}
}

func TestALeafIsNoAuthority(t *testing.T) {
	a, _ := authority(t)
	if _, err := certificate.Read(issue(t, a, gatewayLeaf, time.Now())); err == nil {
		t.Error("a gateway could sign")
	}
}

// cert-manager makes such a CA if an issuer signs it.
func TestAnAuthorityThatAnotherOneSignedIsSentWithWhatItSigns(t *testing.T) {
	_, rootData := authority(t)
	_, own := authority(t)
	own = maps.Clone(own)
	rootPair, err := tls.X509KeyPair(rootData["tls.crt"], rootData["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	ownPair, err := tls.X509KeyPair(own["tls.crt"], own["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	template := *ownPair.Leaf
	template.Subject.CommonName = "Sluice, signed"
	raw, err := x509.CreateCertificate(rand.Reader, &template, rootPair.Leaf, ownPair.Leaf.PublicKey, rootPair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	own["tls.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	own["ca.crt"] = rootData["tls.crt"]
	a, err := certificate.Read(own)
	if err != nil {
		t.Fatal(err)
	}
	data := issue(t, a, gatewayLeaf, time.Now())
	leaf, pool := parsed(t, data)
	between := x509.NewCertPool()
	between.AppendCertsFromPEM(data["tls.crt"])
	options := x509.VerifyOptions{Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := leaf.Verify(options); err != nil {
		t.Error(err)
	}
	delete(own, "ca.crt")
	if _, err := certificate.Read(own); err == nil {
		t.Error("clients could not know what to trust")
	}
}

func TestSecretsAreMadeOnceRenewedWhenDueAndLeftAloneIfAnotherProgramMadeThem(t *testing.T) {
	a, _ := authority(t)
	old := issue(t, a, gatewayLeaf, time.Now().Add(-certificate.Lifetime*9/10))
	s := certificate.Secrets{Namespace: "ns", Client: fake.NewClientBuilder().WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "foreign"}, Data: old},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ours", Labels: map[string]string{certificate.LabelIssued: "true"}},
			Data: old}).Build()}
	read := func(name string) *corev1.Secret {
		t.Helper()
		secret := &corev1.Secret{}
		if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	keep := func(name string) {
		t.Helper()
		owner := metav1.OwnerReference{APIVersion: "sluice.dev/v1alpha1", Kind: "Gateway", Name: "gw-0", UID: "u"}
		if err := s.Keep(t.Context(), a, name, gatewayLeaf, owner); err != nil {
			t.Fatal(err)
		}
	}
	keep("new")
	made := read("new")
	if made.Type != corev1.SecretTypeTLS || len(made.OwnerReferences) != 1 || a.Due(made.Data, gatewayLeaf, time.Now()) {
		t.Errorf("made: %v %v", made.Type, made.OwnerReferences)
	}
	keep("new")
	if again := read("new"); again.ResourceVersion != made.ResourceVersion {
		t.Error("a fresh one was made again")
	}
	keep("ours")
	if a.Due(read("ours").Data, gatewayLeaf, time.Now()) {
		t.Error("ours was not renewed")
	}
	keep("foreign")
	if string(read("foreign").Data["tls.crt"]) != string(old["tls.crt"]) {
		t.Error("one of another program was replaced")
	}
}

func TestASecretThatExistsIsNotGeneratedAgain(t *testing.T) {
	s := certificate.Secrets{Namespace: "ns", Client: fake.NewClientBuilder().Build(), Authority: "ca"}
	var first map[string][]byte
	for range 2 {
		if err := s.Once(t.Context(), "key", corev1.SecretTypeOpaque, certificate.StoreKey); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "key"}, secret); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = secret.Data
		}
		if string(first["secrets.key"]) != string(secret.Data["secrets.key"]) {
			t.Error("another key would make the store's secrets unreadable")
		}
	}
}

// Earlier releases gave the CSI driver a certificate of the operator's role. The first run of a newer operator replaces it.
func TestTheCSIDriversCertificateOfAnEarlierReleaseIsReplacedByOneOfItsOwnRole(t *testing.T) {
	a, _ := authority(t)
	earlier := issue(t, a, certificate.Leaf{CommonName: "sluice-csi", Role: "operator"}, time.Now())
	at := client.ObjectKey{Namespace: "ns", Name: "sluice-csi-tls"}
	s := certificate.Secrets{Namespace: "ns", Prefix: certificate.DefaultPrefix, Client: fake.NewClientBuilder().WithObjects(&corev1.Secret{Data: earlier,
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name, Labels: map[string]string{certificate.LabelIssued: "true"}}}).Build()}
	if err := s.System(t.Context(), a, []string{"sluice-controlplane"}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := s.Client.Get(t.Context(), at, secret); err != nil {
		t.Fatal(err)
	}
	leaf, _ := parsed(t, secret.Data)
	if has := leaf.Subject.Organization; len(has) != 1 || has[0] != "sluice:csi" {
		t.Errorf("the CSI driver's certificate is of %v", has)
	}
}
