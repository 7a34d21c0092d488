package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/go-logr/logr"

	"sluice.dev/sluice/operator/api/v1alpha1"
	sluice "sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// The namespace of gateways' pods, and the time limit of waits.
const (
	systemNamespace = "sluice-system"
	patience        = 90 * time.Second
)

// environment has all running components, for all tests.
type environment struct {
	kubernetes *envtest.Environment
	client     client.Client
	kubeconfig string
	bin        string
	scratch    string
	server     string
	metrics    string
	connection *grpc.ClientConn
	plane      *process
	operator   *process
}

var env *environment

func TestMain(m *testing.M) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Println("not run: KUBEBUILDER_ASSETS is not set; `make test-operator` builds an API server and sets it")
		os.Exit(0)
	}
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	scratch, err := os.MkdirTemp("", "sluice-operator.")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	kubernetes := &envtest.Environment{CRDDirectoryPaths: []string{"../config/crd/bases"}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: 5 * time.Minute}
	// With this check, as in OpenShift, a client that creates an object owned by a resource needs a right to the resource's
	// finalizers.
	kubernetes.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	// The tier has no network except loopback, and the API server does not advertise a loopback address.
	kubernetes.ControlPlane.GetAPIServer().Configure().Set("advertise-address", "192.0.2.1")
	config, err := kubernetes.Start()
	if err != nil {
		panic(err)
	}
	defer func() { _ = kubernetes.Stop() }()
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(v1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(err)
	env = &environment{kubernetes: kubernetes, client: c, scratch: scratch, bin: binaries(), server: freeAddress()}
	must(env.prepare(kubernetes))
	env.connection, err = sluice.Connect(sluice.Options{Endpoints: []string{env.server}, Insecure: true})
	must(err)
	must(env.startControlPlane())
	defer func() { env.plane.stop() }()
	must(env.startOperator())
	defer func() { env.operator.stop() }()
	code := m.Run()
	if code != 0 {
		fmt.Printf("--- operator's log (its end)\n%s\n", tail(env.operator.log))
	}
	if refused := env.refused(); len(refused) > 0 {
		fmt.Printf("FAIL: the roles of config/rbac lack what the operator asked for\n%s\n", strings.Join(refused, "\n"))
		return 1
	}
	return code
}

// refused returns the requests of operators that the API server has refused for lack of a right. Not every refusal fails a test:
// some only lose Events.
func (w *environment) refused() (lines []string) {
	logs, err := filepath.Glob(filepath.Join(w.scratch, "*.log"))
	must(err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		must(err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "is forbidden: User") {
				lines = append(lines, line)
			}
		}
	}
	return lines[:min(len(lines), 5)]
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func binaries() string {
	if at := os.Getenv("SLUICE_BIN"); at != "" {
		return at
	}
	at, err := filepath.Abs("../../build/bin")
	must(err)
	return at
}

// freeAddress is below the ephemeral ports: an outgoing connection might take one of those before the server does.
func freeAddress() string {
	for {
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))); err == nil {
			defer func() { _ = listener.Close() }()
			return listener.Addr().String()
		}
	}
}

// prepare creates namespaces, and a user with the operator's role.
func (w *environment) prepare(kubernetes *envtest.Environment) error {
	ctx := context.Background()
	for _, name := range []string{systemNamespace, "shop", "closed"} {
		if err := w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	user, err := kubernetes.AddUser(envtest.User{Name: "sluice-operator"}, nil)
	if err != nil {
		return err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return err
	}
	w.kubeconfig = filepath.Join(w.scratch, "kubeconfig")
	if err := os.WriteFile(w.kubeconfig, text, 0o600); err != nil {
		return err
	}
	return w.allow(ctx)
}

// allow gives the operator the roles of config/rbac, and no more.
func (w *environment) allow(ctx context.Context) error {
	text, err := os.ReadFile("../config/rbac/role.yaml")
	if err != nil {
		return err
	}
	cluster, here, found := bytes.Cut(bytes.TrimPrefix(text, []byte("---\n")), []byte("---\n"))
	if !found {
		return errors.New("role.yaml has no role of the namespace")
	}
	role, namespaced := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	if err := errors.Join(yaml.Unmarshal(cluster, role), yaml.Unmarshal(here, namespaced)); err != nil {
		return err
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "sluice-operator"}}
	// The Role that the chart creates for a namespace in operator.secretNamespaces.
	secrets := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sluice-operator-secrets"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
	for _, object := range []client.Object{role, namespaced, secrets, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: secrets.Namespace, Name: secrets.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: secrets.Name}, Subjects: subjects,
	}, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaced.Namespace, Name: namespaced.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: namespaced.Name}, Subjects: subjects,
	}} {
		if err := w.client.Create(ctx, object); err != nil {
			return err
		}
	}
	return w.client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   subjects,
	})
}

// process is a running program.
type process struct {
	*exec.Cmd
	log  string
	done chan struct{}
}

func (w *environment) start(name, program string, arguments ...string) (*process, error) {
	p := &process{Cmd: exec.Command(filepath.Join(w.bin, program), arguments...), log: filepath.Join(w.scratch, name+".log"),
		done: make(chan struct{})}
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.Stdout, p.Stderr = file, file
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = p.Start()
	_ = file.Close()
	if err != nil {
		return nil, err
	}
	go func() { _ = p.Wait(); close(p.done) }()
	return p, nil
}

func (p *process) stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.Process.Kill()
		<-p.done
	}
}

func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (w *environment) startControlPlane() (err error) {
	w.plane, err = w.start("controlplane", "sluice-controlplane", "serve", "--insecure", "--listen", w.server, "--metrics", "",
		"--data-dir", filepath.Join(w.scratch, "data"))
	if err != nil {
		return err
	}
	return until(func() error {
		if w.plane.over() {
			return fmt.Errorf("the control plane ended: %s", tail(w.plane.log))
		}
		_, err := pb.NewFabricServiceClient(w.connection).ListFabrics(context.Background(), &pb.ListFabricsRequest{})
		return err
	})
}

func (w *environment) startOperator() (err error) {
	w.metrics = freeAddress()
	w.operator, err = w.runOperator("operator", w.metrics)
	return err
}

// runOperator starts an operator; without flags for it, on the shared control plane.
func (w *environment) runOperator(name, metrics string, flags ...string) (*process, error) {
	if len(flags) == 0 {
		flags = []string{"--server", w.server, "--insecure", "--log-level", "debug"}
	}
	return w.start(name, "sluice-operator", append(flags, "--kubeconfig", w.kubeconfig, "--namespace", systemNamespace, "--secrets-every", "1s",
		"--metrics", metrics, "--probes", "0")...)
}

func tail(path string) string {
	text, _ := os.ReadFile(path)
	return string(text[max(0, len(text)-12000):])
}

// until tries until it succeeds or patience is over.
func until(try func() error) error {
	end := time.Now().Add(patience)
	for {
		err := try()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func eventually(t *testing.T, try func() error) {
	t.Helper()
	if err := until(try); err != nil {
		t.Fatalf("not in %s: %v", patience, err)
	}
}

// create creates resources from YAML, and deletes them when the test ends.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := env.client.Create(t.Context(), object); err != nil {
			t.Fatalf("%T %s: %v", object, object.GetName(), err)
		}
		t.Cleanup(func() { remove(t, object) })
	}
}

// remove deletes an object and waits until it is gone.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	ctx := context.Background()
	err := until(func() error {
		if err := env.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return err
		}
		err := env.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("%T %s is still there: %v", object, object.GetName(), conditionsOf(object))
		}
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("not deleted in %s: %v", patience, err)
	}
}

func conditionsOf(object client.Object) []metav1.Condition {
	if r, ok := object.(v1alpha1.Resource); ok {
		return r.Common().Conditions
	}
	return nil
}

// read reads YAML into a resource.
func read[T client.Object](t *testing.T, object T, text string) T {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

// ready waits until Ready has a status, a reason and a message that contains the text.
func ready(t *testing.T, r client.Object, status metav1.ConditionStatus, reason, text string) {
	t.Helper()
	shows(t, r, v1alpha1.ConditionReady, status, reason, text)
}

// shows is ready for a condition of any type.
func shows(t *testing.T, r client.Object, kind string, status metav1.ConditionStatus, reason, text string) {
	t.Helper()
	eventually(t, func() error {
		if err := env.client.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(conditionsOf(r), kind)
		if c == nil || c.Status != status || reason != "" && c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("%T %s: wanted %s=%s %s %q, have %+v", r, r.GetName(), kind, status, reason, text, conditionsOf(r))
		}
		return nil
	})
}

// change changes the newest version of an object.
func change[T client.Object](t *testing.T, object T, how func(T)) error {
	t.Helper()
	if err := env.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopyObject().(T)
	how(object)
	return env.client.Patch(t.Context(), object, client.MergeFrom(before))
}
