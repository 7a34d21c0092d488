package kubernetes_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// apiServer serves the objects that the plugin reads, and forwards ports over SPDY as the kubelet does.
type apiServer struct {
	services []corev1.Service
	pods     []corev1.Pod
	secrets  []corev1.Secret
	// forbidden are paths that the caller has no right to.
	forbidden []string
	// backend is the address behind the port of each pod.
	backend string
	// open has an element for each forwarded connection.
	open sync.WaitGroup
}

// start returns a kubeconfig of the server, whose context has the namespace.
func (a *apiServer) start(t *testing.T, namespace string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", Namespace: namespace}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func (a *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	for _, forbidden := range a.forbidden {
		if path == forbidden {
			answer(w, http.StatusForbidden, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonForbidden, Message: path + " is forbidden", Code: http.StatusForbidden})
			return
		}
	}
	parts := strings.Split(path, "/")
	namespace, noun := "", parts[0]
	if noun == "namespaces" {
		namespace, noun = parts[1], parts[2]
	}
	switch {
	case strings.HasSuffix(path, "/portforward"):
		a.forward(w, r)
	case noun == "services":
		var list corev1.ServiceList
		for _, service := range a.services {
			if wanted := r.URL.Query().Get("labelSelector"); namespace == "" || service.Namespace == namespace {
				if !strings.Contains(wanted, "instance=") || strings.HasSuffix(wanted, "instance="+service.Labels["app.kubernetes.io/instance"]) {
					list.Items = append(list.Items, service)
				}
			}
		}
		answer(w, http.StatusOK, list)
	case noun == "pods":
		answer(w, http.StatusOK, corev1.PodList{Items: a.pods})
	case noun == "secrets":
		for _, secret := range a.secrets {
			if secret.Namespace == namespace && secret.Name == parts[3] {
				answer(w, http.StatusOK, secret)
				return
			}
		}
		answer(w, http.StatusNotFound, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Message: path + " not found", Code: http.StatusNotFound})
	}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// forward refuses WebSocket, as API servers before Kubernetes 1.31 do, and copies the data of each pair of SPDY streams.
func (a *apiServer) forward(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(w, "no WebSocket here", http.StatusBadRequest)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, accepted <-chan struct{}) error {
		a.open.Go(func() {
			<-accepted
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				a.copy(stream)
			} else {
				_ = stream.Close() // it would hold an error
			}
		})
		return nil
	})
	if connection != nil {
		<-connection.CloseChan()
	}
}

func (a *apiServer) copy(stream httpstream.Stream) {
	backend, err := net.Dial("tcp", a.backend)
	if err != nil {
		_ = stream.Reset()
		return
	}
	defer func() { _ = backend.Close() }()
	go func() { _, _ = io.Copy(backend, stream); _ = backend.Close() }()
	_, _ = io.Copy(stream, backend)
	_ = stream.Close()
}

// files returns the names of the files below a directory.
func files(t *testing.T, directory string) []string {
	t.Helper()
	var names []string
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
