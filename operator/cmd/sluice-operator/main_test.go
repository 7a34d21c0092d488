package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// kubeconfigOf returns a kubeconfig for an API server that has one Secret, and knows a few kinds.
func kubeconfigOf(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	answers := map[string]any{
		"/api": metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{{
			Name: "policy", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "policy/v1", Version: "v1"}}}}},
		"/apis/policy/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "policy/v1",
			APIResources: []metav1.APIResource{{Name: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true}}},
		"/api/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "secrets", Kind: "Secret", Namespaced: true}, {Name: "nodes", Kind: "Node"},
				{Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "services", Kind: "Service", Namespaced: true},
			}},
		"/api/v1/namespaces/" + secret.Namespace + "/secrets/" + secret.Name: secret,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	at := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
  clusters: [{name: c, cluster: {server: %q}}]}`, server.URL)
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// The manager is not started, so its cache answers nothing: successful reads come from the API server.
func TestTheOperatorReadsSecretsFromTheAPIServerAndKeepsNoneInItsCache(t *testing.T) {
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "sluice-system", Name: "authority"}, Data: map[string][]byte{"k": []byte("v")}}
	s := &settings{kubeconfig: kubeconfigOf(t, secret), metrics: "0", probes: "0"}
	s.gateways.Namespace = secret.Namespace
	mgr, err := s.manager()
	if err != nil {
		t.Fatal(err)
	}
	var read corev1.Secret
	err = mgr.GetClient().Get(t.Context(), types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, &read)
	if err != nil || string(read.Data["k"]) != "v" {
		t.Errorf("read %v, %v", read.Data, err)
	}
	cached := (*cache.ErrCacheNotStarted)(nil)
	if err := mgr.GetClient().Get(t.Context(), types.NamespacedName{Name: "n1"}, &corev1.Node{}); !errors.As(err, &cached) {
		t.Errorf("a node is not read from the cache: %v", err)
	}
}
