package kubernetes_test

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/kubernetes"
	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// installed returns an API server with a release in a namespace: its Service, a ready pod, and the administrator's Secret.
func installed(t *testing.T, namespace string) *apiServer {
	t.Helper()
	directory := t.TempDir()
	authority, err := certs.OpenAuthority(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []certs.Leaf{
		{File: "server", CommonName: "controlplane", Role: "server", Hosts: []string{"sluice-controlplane." + namespace + ".svc"}},
		{File: "admin", CommonName: "admin", Role: "admin"},
	} {
		if err := authority.Issue(leaf); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return &apiServer{
		services: []corev1.Service{service(namespace, "sluice")},
		pods: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Name: "sluice-controlplane-0", Namespace: namespace},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "grpc", ContainerPort: 7460}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}},
		secrets: []corev1.Secret{{
			ObjectMeta: metav1.ObjectMeta{Name: "sluice-admin-tls", Namespace: namespace},
			Data:       map[string][]byte{"ca.crt": read("ca.crt"), "tls.crt": read("admin.crt"), "tls.key": read("admin.key")},
		}},
		backend: controlPlane(t, directory),
	}
}

func service(namespace, release string) corev1.Service {
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "sluice-controlplane", Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/instance": release}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app.kubernetes.io/name": "sluice-controlplane"}},
	}
}

// fabrics answers with the name in the certificate of its caller as the name of a fabric.
type fabrics struct {
	pb.UnimplementedFabricServiceServer
}

func (fabrics) ListFabrics(ctx context.Context, _ *pb.ListFabricsRequest) (*pb.ListFabricsResponse, error) {
	from, _ := peer.FromContext(ctx)
	holder := from.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName
	return &pb.ListFabricsResponse{Fabrics: []*pb.Fabric{{Meta: &pb.ObjectMeta{Name: holder}}}}, nil
}

// controlPlane serves fabrics with mutual TLS, and returns its address.
func controlPlane(t *testing.T, directory string) string {
	t.Helper()
	reloader, err := client.NewReloader(client.Files{CA: filepath.Join(directory, "ca.crt"),
		Certificate: filepath.Join(directory, "server.crt"), Key: filepath.Join(directory, "server.key")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	loaded := reloader.Current()
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{loaded.Certificate}, ClientCAs: loaded.Authorities, ClientAuth: tls.RequireAndVerifyClientCert})))
	pb.RegisterFabricServiceServer(server, fabrics{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// connect is Access.Connect with the arguments of a command line.
func connect(t *testing.T, kubeconfig string, arguments ...string) (*kubernetes.Connection, error) {
	t.Helper()
	var access kubernetes.Access
	flags := pflag.NewFlagSet("kubectl-sluice", pflag.ContinueOnError)
	access.AddTo(flags)
	if err := flags.Parse(append([]string{"--kubeconfig", kubeconfig}, arguments...)); err != nil {
		t.Fatal(err)
	}
	return access.Connect(t.Context())
}

func TestACallReachesTheControlPlaneOfTheReleaseAsItsAdministrator(t *testing.T) {
	for name, c := range map[string]struct {
		of        string
		arguments []string
	}{
		"the context's own namespace": {"sluice-system", nil},
		"the only release":            {"shop", nil},
		"a given namespace":           {"shop", []string{"-n", "sluice-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := installed(t, "sluice-system")
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			t.Setenv("HOME", temporary)
			found, err := connect(t, server.start(t, c.of), c.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			connection, err := client.Connect(client.Options{Endpoints: []string{found.Endpoint}, Credentials: found.Credentials})
			if err != nil {
				t.Fatal(err)
			}
			answer, err := pb.NewFabricServiceClient(connection).ListFabrics(t.Context(), &pb.ListFabricsRequest{})
			if err != nil || answer.GetFabrics()[0].GetMeta().GetName() != "admin" {
				t.Errorf("%v, %v", answer, err)
			}
			_ = connection.Close()
			found.Close()
			server.open.Wait()
			if _, err := net.Dial("tcp", found.Endpoint); err == nil {
				t.Errorf("%s is open after Close", found.Endpoint)
			}
			if left := files(t, temporary); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
		})
	}
}

func TestAServerOfAnotherNameIsRefused(t *testing.T) {
	server := installed(t, "other")
	server.services[0].Namespace, server.pods[0].Namespace, server.secrets[0].Namespace = "sluice-system", "sluice-system", "sluice-system"
	found, err := connect(t, server.start(t, "sluice-system"))
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	connection, err := client.Connect(client.Options{Endpoints: []string{found.Endpoint}, Credentials: found.Credentials})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_, err = pb.NewFabricServiceClient(connection).ListFabrics(t.Context(), &pb.ListFabricsRequest{})
	if err == nil || !strings.Contains(err.Error(), "sluice-controlplane.sluice-system.svc") {
		t.Errorf("%v", err)
	}
}

func TestAReleaseThatCannotBeReachedIsAnErrorWithItsRemedy(t *testing.T) {
	const system = "namespaces/sluice-system/"
	for name, c := range map[string]struct {
		change    func(*apiServer)
		of        string
		arguments []string
		code      codes.Code
		words     []string
	}{
		"no right to the Secret": {
			change: func(a *apiServer) { a.forbidden = []string{system + "secrets/sluice-admin-tls"} },
			code:   codes.PermissionDenied, words: []string{"Secret sluice-system/sluice-admin-tls", "get secret sluice-admin-tls in namespace sluice-system"},
		},
		"no Secret": {
			change: func(a *apiServer) { a.secrets = nil }, code: codes.NotFound, words: []string{"sluice-admin-tls", "does not exist", "tls.mode=provided"},
		},
		"a Secret without CA": {
			change: func(a *apiServer) { delete(a.secrets[0].Data, "ca.crt") }, code: codes.FailedPrecondition, words: []string{"ca.crt holds no certificate"},
		},
		"a Secret without key": {
			change: func(a *apiServer) { delete(a.secrets[0].Data, "tls.key") }, code: codes.FailedPrecondition, words: []string{"tls.crt and tls.key"},
		},
		"no pod": {
			change: func(a *apiServer) { a.pods = nil }, code: codes.FailedPrecondition, words: []string{"is ready: there is none", "describe pods -l"},
		},
		"no ready pod": {
			change: func(a *apiServer) { a.pods[0].Status.Conditions = nil }, code: codes.FailedPrecondition,
			words: []string{"sluice-controlplane-0 is Running", "kubectl -n sluice-system describe pods -l app.kubernetes.io/name=sluice-controlplane"},
		},
		"no right to forward": {
			change: func(a *apiServer) { a.forbidden = []string{system + "pods/sluice-controlplane-0/portforward"} },
			code:   codes.Unavailable, words: []string{"sluice-controlplane-0", "forbidden", "create pods/portforward in namespace sluice-system"},
		},
		"several releases": {
			change: func(a *apiServer) { a.services = append(a.services, service("other", "second")) }, of: "default",
			code: codes.InvalidArgument, words: []string{"second in namespace other, sluice in namespace sluice-system", "-n NAMESPACE or --release NAME"},
		},
		"no release": {
			change: func(a *apiServer) { a.services = nil }, code: codes.NotFound, words: []string{"no release of Sluice in all namespaces", "--context", "--server"},
		},
		"no release in the given namespace": {
			arguments: []string{"-n", "other"}, code: codes.NotFound, words: []string{"no release of Sluice in namespace other"},
		},
		"no release of that name": {
			arguments: []string{"--release", "third"}, code: codes.NotFound, words: []string{"no release third of Sluice"},
		},
		"no right to list all namespaces": {
			change: func(a *apiServer) { a.forbidden = []string{"services"} }, of: "default",
			code: codes.PermissionDenied, words: []string{"namespace default has no release", "-n NAMESPACE"},
		},
		"no right to list the given namespace": {
			change:    func(a *apiServer) { a.forbidden = []string{"namespaces/other/services"} },
			arguments: []string{"-n", "other"}, code: codes.PermissionDenied, words: []string{"list services in namespace other"},
		},
		"an absent context": {
			arguments: []string{"--context", "absent"}, code: codes.InvalidArgument, words: []string{`context "absent" does not exist`, "--kubeconfig"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := installed(t, "sluice-system")
			if c.change != nil {
				c.change(server)
			}
			of := c.of
			if of == "" {
				of = "sluice-system"
			}
			found, err := connect(t, server.start(t, of), c.arguments...)
			if err == nil {
				found.Close()
				t.Fatal("it connects")
			}
			if status.Code(err) != c.code {
				t.Errorf("code %v, not %v", status.Code(err), c.code)
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q is missing: %v", word, err)
				}
			}
		})
	}
}
