package test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"sluice.dev/sluice/operator/internal/certificate"
)

const golden = "../../charts/sluice/tests/golden/"

// rendered returns the objects of a golden render of the chart, which the charts' own tests keep current.
func rendered(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// elsewhere are API groups of other projects, whose kinds this API server does not have.
var elsewhere = []string{"cert-manager.io", "monitoring.coreos.com", "snapshot.storage.k8s.io"}

func TestEveryObjectOfTheChartIsTakenByTheAPIServer(t *testing.T) {
	files, err := filepath.Glob(golden + "*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		taken := 0
		for _, object := range rendered(t, file) {
			object.SetName("rendered-" + object.GetName()) // the operator's own roles exist already
			err := env.client.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
			group := object.GroupVersionKind().Group
			if apimeta.IsNoMatchError(err) && strings.Contains(strings.Join(elsewhere, " "), group) {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s %s: %v", filepath.Base(file), object.GetKind(), object.GetName(), err)
			}
			taken++
		}
		if taken < 10 {
			t.Errorf("%s: only %d objects", file, taken)
		}
	}
}

// preparer returns the kubeconfig of a user with the rights of the chart's hook, in a separate namespace.
func preparer(t *testing.T, namespace string) string {
	t.Helper()
	user, err := env.kubernetes.AddUser(envtest.User{Name: "sluice-prepare"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	made := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, object := range rendered(t, golden+"default.yaml") {
		if object.GetKind() == "Role" && object.GetName() == "sluice-prepare" {
			role := &rbacv1.Role{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
				t.Fatal(err)
			}
			role.Namespace = namespace
			made = append(made, role, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "sluice-prepare"}},
			})
		}
	}
	for _, object := range made {
		if err := env.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return kubeconfig
}

// run runs a program until it ends, and returns its output.
func (w *environment) run(t *testing.T, program string, arguments ...string) (string, error) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), filepath.Join(w.bin, program), arguments...).CombinedOutput()
	return string(output), err
}

// mounted writes a Secret's keys as files, as in a pod.
func mounted(t *testing.T, namespace, name string) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := env.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	for key, content := range secret.Data {
		if err := os.WriteFile(filepath.Join(at, key), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// earlierRelease gives the CSI driver the certificate of releases before the role csi: one of the operator's role.
func earlierRelease(t *testing.T, namespace string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := env.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "sluice-ca"}, secret); err != nil {
		t.Fatal(err)
	}
	authority, err := certificate.Read(secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	data, err := authority.Issue(certificate.Leaf{CommonName: "sluice-csi", Role: "operator"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := env.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "sluice-csi-tls"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data = data
	if err := env.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

func tlsFlags(at string) []string {
	return []string{"--tls-ca", at + "/ca.crt", "--tls-cert", at + "/tls.crt", "--tls-key", at + "/tls.key"}
}

func TestWithTheChartsRightsItsHookMakesSecretsThatASystemRunsOnAndMakesThemOnce(t *testing.T) {
	const namespace = "prepared"
	kubeconfig := preparer(t, namespace)
	prepare := func() map[string]string {
		t.Helper()
		if output, err := env.run(t, "sluice-operator", "prepare", "--kubeconfig", kubeconfig, "--namespace", namespace,
			"--authority", "sluice-ca", "--store-key", "sluice-controlplane-key", "--server-name", "localhost"); err != nil {
			t.Fatal(output)
		}
		var all corev1.SecretList
		if err := env.client.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, secret := range all.Items {
			versions[secret.Name] = secret.ResourceVersion
		}
		return versions
	}
	first := prepare()
	if len(first) != 6 {
		t.Fatalf("there are %v", first)
	}
	for name, version := range prepare() {
		if first[name] != version {
			t.Errorf("%s was made again", name)
		}
	}
	earlierRelease(t, namespace)
	prepare()

	_, port, _ := net.SplitHostPort(freeAddress())
	server := "localhost:" + port
	plane, err := env.start("prepared-controlplane", "sluice-controlplane", append([]string{"serve", "--listen", "127.0.0.1:" + port,
		"--metrics", "", "--data-dir", t.TempDir(), "--key-file", mounted(t, namespace, "sluice-controlplane-key") + "/secrets.key"},
		tlsFlags(mounted(t, namespace, "sluice-controlplane-tls"))...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer plane.stop()
	for who, refused := range map[string]string{"sluice-operator-tls": "", "sluice-admin-tls": "",
		"sluice-csi-tls": "sluice-csi (role csi) may not call"} { // it lists sessions
		arguments := append([]string{"unused", "--server", server}, tlsFlags(mounted(t, namespace, who))...)
		output := ""
		for end := time.Now().Add(patience); ; {
			output, err = env.run(t, "sluice-operator", arguments...)
			if err == nil || refused != "" && strings.Contains(output, refused) || time.Now().After(end) || plane.over() {
				break
			}
		}
		if (err != nil) != (refused != "") || !strings.Contains(output, refused) {
			t.Errorf("%s: %s\n%s", who, output, tail(plane.log))
		}
	}
}

func TestAnUninstallIsRefusedIfItIsUnknownWhetherHostsAreLoggedIn(t *testing.T) {
	output, err := env.run(t, "sluice-operator", "unused", "--insecure", "--server", freeAddress())
	if err == nil || !strings.Contains(output, "whether hosts are logged in is not known") {
		t.Errorf("%v: %s", err, output)
	}
}

func TestPortalsOfATargetThatDoesNotComeAreNotWaitedForWithoutEnd(t *testing.T) {
	to := filepath.Join(t.TempDir(), "urls")
	output, err := env.run(t, "sluice-operator", "portals", "--insecure", "--server", env.server, "--target", "shop.never", "--to", to,
		"--timeout", "1s")
	if err == nil || !strings.Contains(output, "target shop.never: time is up") {
		t.Errorf("%v: %s", err, output)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("portals were written")
	}
}
