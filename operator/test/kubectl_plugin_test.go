package test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// plugin runs kubectl-sluice in a namespace, and returns its exit code and its output.
func plugin(t *testing.T, kubeconfig, namespace string) (int, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(env.bin, "kubectl-sluice"), "--kubeconfig", kubeconfig, "-n", namespace, "fabric", "list")
	out, err := command.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

// The API server checks rights and selectors here; it has no kubelet, so no port is forwarded.
func TestThePluginOfKubectlNamesWhatPreventsAConnection(t *testing.T) {
	const namespace = "plugin"
	kubeconfigOf := func(user envtest.User) string {
		added, err := env.kubernetes.AddUser(user, nil)
		must(err)
		config, err := added.KubeConfig()
		must(err)
		path := filepath.Join(t.TempDir(), user.Name)
		must(os.WriteFile(path, config, 0o600))
		return path
	}
	admin, visitor := kubeconfigOf(envtest.User{Name: "admin", Groups: []string{"system:masters"}}), kubeconfigOf(envtest.User{Name: "visitor"})
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	ctx := t.Context()
	must(env.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))

	expect := func(state, kubeconfig string, code int, words string) {
		t.Helper()
		if got, out := plugin(t, kubeconfig, namespace); got != code || !strings.Contains(out, words) {
			t.Errorf("%s: exit code %d, not %d, or %q is missing: %s", state, got, code, words, out)
		}
	}
	expect("no release", admin, 3, "no release of Sluice in namespace plugin")
	expect("no right to services", visitor, 6, "list services in namespace plugin")

	labels := map[string]string{"app.kubernetes.io/name": "sluice-controlplane", "app.kubernetes.io/instance": "sluice"}
	service := &corev1.Service{ObjectMeta: named("sluice-controlplane"), Spec: corev1.ServiceSpec{Selector: labels,
		Ports: []corev1.ServicePort{{Name: "grpc", Port: 7460, TargetPort: intstr.FromString("grpc")}}}}
	service.Labels = map[string]string{"app.kubernetes.io/part-of": "sluice"}
	for key, value := range labels {
		service.Labels[key] = value
	}
	must(env.client.Create(ctx, service))
	must(env.client.Create(ctx, &rbacv1.Role{ObjectMeta: named("services"),
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list"}}}}))
	must(env.client.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: named("services"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "services"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "visitor"}}}))
	expect("no Secret", admin, 3, "sluice-admin-tls, the administrator's certificate of release sluice: it does not exist")
	expect("no right to the Secret", visitor, 6, "get secret sluice-admin-tls in namespace plugin")

	files := certificates(t)
	data := map[string][]byte{}
	for key, file := range map[string]string{"ca.crt": "ca.crt", "tls.crt": "admin.crt", "tls.key": "admin.key"} {
		text, err := os.ReadFile(filepath.Join(files, file))
		must(err)
		data[key] = text
	}
	must(env.client.Create(ctx, &corev1.Secret{ObjectMeta: named("sluice-admin-tls"), Type: corev1.SecretTypeTLS, Data: data}))
	expect("no pod", admin, 5, "is ready: there is none")
}
