package test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

// certificates makes a CA and certificates with the project's own command, in a new folder.
func certificates(t *testing.T) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "certs")
	made := exec.CommandContext(t.Context(), filepath.Join(env.bin, "sluice-controlplane"), "certs", "--directory", directory)
	if text, err := made.CombinedOutput(); err != nil {
		t.Fatalf("certs: %v: %s", err, text)
	}
	return directory
}

// expire adds expired.crt and expired.key, an operator's certificate that expired an hour ago, to a folder of certificates.
func expire(t *testing.T, directory string) {
	t.Helper()
	decoded := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(directory, name))
		must(err)
		block, _ := pem.Decode(text)
		return block.Bytes
	}
	ca, err := x509.ParseCertificate(decoded("ca.crt"))
	must(err)
	caKey, err := x509.ParseECPrivateKey(decoded("ca.key"))
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		Subject:     pkix.Name{CommonName: "sluice-operator", Organization: []string{"sluice:operator"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, &key.PublicKey, caKey)
	must(err)
	raw, err := x509.MarshalECPrivateKey(key)
	must(err)
	for name, block := range map[string]*pem.Block{
		"expired.crt": {Type: "CERTIFICATE", Bytes: signed}, "expired.key": {Type: "EC PRIVATE KEY", Bytes: raw},
	} {
		must(os.WriteFile(filepath.Join(directory, name), pem.EncodeToMemory(block), 0o600))
	}
}

// mountedSecret is a Secret as in a pod: files behind a link that is replaced atomically.
type mountedSecret string

func (m mountedSecret) path(name string) string { return filepath.Join(string(m), "now", name) }

func (m mountedSecret) hold(t *testing.T, ca, certificate string) {
	t.Helper()
	next, err := os.MkdirTemp(string(m), "data-")
	must(err)
	for name, from := range map[string]string{"ca.crt": ca, "tls.crt": certificate + ".crt", "tls.key": certificate + ".key"} {
		text, err := os.ReadFile(from)
		must(err)
		must(os.WriteFile(filepath.Join(next, name), text, 0o600))
	}
	link := filepath.Join(string(m), "next")
	must(os.Symlink(next, link))
	must(os.Rename(link, filepath.Join(string(m), "now")))
}

// secured runs a control plane with TLS, and an operator with the certificates of a folder, separate from the shared ones.
func secured(t *testing.T, certs string, own mountedSecret) *process {
	t.Helper()
	server := freeAddress()
	plane, err := env.start("controlplane-tls", "sluice-controlplane", "serve", "--listen", server, "--metrics", "",
		"--data-dir", filepath.Join(t.TempDir(), "data"), "--tls-ca", filepath.Join(certs, "ca.crt"),
		"--tls-cert", filepath.Join(certs, "server.crt"), "--tls-key", filepath.Join(certs, "server.key"))
	must(err)
	t.Cleanup(plane.stop)
	if err := until(func() error {
		probe, err := net.Dial("tcp", server)
		if err == nil {
			err = probe.Close()
		}
		return err
	}); err != nil {
		t.Fatalf("%v\n%s", err, tail(plane.log))
	}
	env.operator.stop()
	t.Cleanup(func() { must(env.startOperator()) })
	operator, err := env.runOperator("operator-tls", freeAddress(), "--server", server, "--log-level", "info",
		"--tls-ca", own.path("ca.crt"), "--tls-cert", own.path("tls.crt"), "--tls-key", own.path("tls.key"))
	must(err)
	t.Cleanup(operator.stop)
	return operator
}

func TestAWrongCertificateIsReportedAndACorrectedOneIsLoadedWithoutARestart(t *testing.T) {
	certs, strange := certificates(t), certificates(t)
	expire(t, certs)
	ca, operators := filepath.Join(certs, "ca.crt"), filepath.Join(certs, "operator")
	own := mountedSecret(t.TempDir())
	own.hold(t, ca, operators)
	operator := secured(t, certs, own)
	fabric := read(t, &v1alpha1.Fabric{}, "metadata: {name: secured}\nspec: {subnets: [192.0.2.0/24]}")
	must(env.client.Create(t.Context(), fabric))
	t.Cleanup(func() {
		before := fabric.DeepCopy()
		fabric.Annotations = map[string]string{v1alpha1.AnnotationAbandon: "true"}
		_ = env.client.Patch(context.Background(), fabric, client.MergeFrom(before))
		remove(t, fabric)
	})
	for i, c := range []struct {
		claim, ca, certificate string
		status                 metav1.ConditionStatus
		reason, says           string
	}{
		{"the right one", ca, operators, metav1.ConditionTrue, "", ""},
		{"another role's", ca, filepath.Join(certs, "reader"), metav1.ConditionFalse, "NotAllowed", "the organization sluice:operator"},
		{"one of a CA that the control plane does not know", ca, filepath.Join(strange, "operator"), metav1.ConditionUnknown,
			"ControlPlaneNotTrusted", "--tls-cert a certificate that the control plane's own --tls-ca has signed"},
		{"a CA that has not signed the control plane's", filepath.Join(strange, "ca.crt"), operators, metav1.ConditionUnknown,
			"ControlPlaneNotTrusted", "signed by unknown authority"},
		{"the right one again", ca, operators, metav1.ConditionTrue, "", ""},
		{"an expired one", ca, filepath.Join(certs, "expired"), metav1.ConditionUnknown, "ControlPlaneNotTrusted", "has expired on"},
		{"a renewed one", ca, operators, metav1.ConditionTrue, "", ""},
	} {
		own.hold(t, c.ca, c.certificate)
		err := until(func() error {
			// The spec is new each time. So the control plane must be called, and a role that may only read fails.
			if err := change(t, fabric, func(f *v1alpha1.Fabric) {
				f.Spec.Subnets = []string{fmt.Sprintf("10.%d.%d.0/24", i, time.Now().UnixMilli()%250)}
			}); err != nil {
				return err
			}
			now := apimeta.FindStatusCondition(fabric.Status.Conditions, v1alpha1.ConditionReady)
			if now == nil || now.Status != c.status || c.reason != "" && now.Reason != c.reason || !strings.Contains(now.Message, c.says) {
				return fmt.Errorf("wanted Ready=%s %s %q, have %+v", c.status, c.reason, c.says, now)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.claim, err, tail(operator.log))
		}
		if log := tail(operator.log); c.says != "" && !strings.Contains(log, c.says) {
			t.Errorf("%s: the log does not say %q", c.claim, c.says)
		}
	}
	if operator.over() {
		t.Error("the operator has ended")
	}
}

func TestAResourceMayBeAbandonedWhileTheControlPlaneIsAway(t *testing.T) {
	create(t, storagePool(t, "gone"))
	r := volume(t, "gone", `{pool: gone, size: 1Gi}`)
	create(t, r)
	delivered(t, r)
	env.plane.stop()
	t.Cleanup(func() {
		must(env.startControlPlane())
		eventually(t, func() error { return deleteVolume(context.Background(), "shop.gone") })
	})
	if err := change(t, r, func(r *v1alpha1.Volume) { r.Annotations = map[string]string{v1alpha1.AnnotationAbandon: "true"} }); err != nil {
		t.Fatal(err)
	}
	remove(t, r)
}
