// Package install_test installs the charts, as `make repo` publishes them, in a real API server, which validates each object. No
// kubelet runs: pods never start.
package install_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	root      = "../../.."
	namespace = "sluice-system"
	release   = "sluice"
)

// cluster is an API server, and a registry with the layouts of the charts.
type cluster struct {
	*testing.T
	client.WithWatch
	registry, version string
	environment       []string
}

func start(t *testing.T) *cluster {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	server := &envtest.Environment{ControlPlaneStartTimeout: 5 * time.Minute}
	// The tier has no network except loopback, and the API server does not advertise a loopback address.
	server.ControlPlane.GetAPIServer().Configure().Set("advertise-address", "192.0.2.1")
	config, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	connected, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, WithWatch: connected, environment: append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+home,
		"HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "SOURCE_DATE_EPOCH=0", "NO_PROXY=*")}
	c.publish(filepath.Join(home, "layouts"))
	return c
}

// publish makes the layouts as .ci/images does, and serves them.
func (c *cluster) publish(directory string) {
	c.Helper()
	for _, chart := range []string{"sluice", "sluice-crds"} {
		c.run("helm", "package", filepath.Join(root, "charts", chart), "--destination", directory+"-packages")
	}
	packages, err := filepath.Glob(directory + "-packages/*.tgz")
	if err != nil || len(packages) != 2 {
		c.Fatal(packages, err)
	}
	c.run("oci-layout", append([]string{directory}, packages...)...)
	served := httptest.NewServer(layouts(directory))
	c.Cleanup(served.Close)
	c.registry = strings.TrimPrefix(served.URL, "http://")
	for _, path := range packages {
		if name, ok := strings.CutPrefix(filepath.Base(path), "sluice-crds-"); ok {
			c.version = strings.TrimSuffix(name, ".tgz")
		}
	}
}

func (c *cluster) run(program string, arguments ...string) string {
	c.Helper()
	command := exec.CommandContext(c.Context(), filepath.Join(root, "build/tools", program), arguments...)
	command.Env = c.environment
	output, err := command.CombinedOutput()
	if err != nil {
		c.Fatalf("%s %s: %v: %s", program, strings.Join(arguments, " "), err, output)
	}
	return string(output)
}

// helm installs or upgrades a chart from the registry.
func (c *cluster) helm(verb, release, chart string, arguments ...string) {
	c.Helper()
	c.run("helm", append([]string{verb, release, "oci://" + c.registry + "/charts/" + chart, "--plain-http", "--version", c.version,
		"--namespace", namespace, "--create-namespace", "--wait=false"}, arguments...)...)
}

// completeJobs does the work of the Job controller and of a node: hooks of the chart are Jobs, and Helm waits for them.
func (c *cluster) completeJobs(ctx context.Context) {
	watched, err := c.Watch(ctx, &batchv1.JobList{}, client.InNamespace(namespace))
	if err != nil {
		c.Error(err)
		return
	}
	defer watched.Stop()
	for event := range watched.ResultChan() {
		job, ok := event.Object.(*batchv1.Job)
		if !ok || job.Status.Succeeded > 0 || !job.DeletionTimestamp.IsZero() {
			continue
		}
		now := metav1.Now()
		job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now}}}
		if err := c.Status().Update(ctx, job); err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) && ctx.Err() == nil {
			c.Error(err)
		}
	}
}

// there checks whether an object exists.
func (c *cluster) there(object client.Object, name string, want bool) {
	c.Helper()
	err := c.Get(c.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if found := err == nil; found != want || err != nil && !errors.IsNotFound(err) {
		c.Errorf("%T %s is there: %v; wanted %v (%v)", object, name, found, want, err)
	}
}

func (c *cluster) definitions() (count int) {
	c.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(c.Context(), &list); err != nil {
		c.Fatal(err)
	}
	for _, found := range list.Items {
		if found.Spec.Group == "sluice.dev" && found.DeletionTimestamp.IsZero() {
			count++
		}
	}
	return count
}

const definitions = 8

func TestTheChartsAreInstalledUpgradedAndUninstalledFromARegistryWithTheirLayouts(t *testing.T) {
	c := start(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.completeJobs(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })

	c.helm("install", release+"-crds", "sluice-crds")
	c.helm("install", release, "sluice")
	if have := c.definitions(); have != definitions {
		t.Errorf("%d definitions of custom resources, and there are %d kinds", have, definitions)
	}
	for _, present := range []bool{true, false} {
		c.there(&appsv1.StatefulSet{}, "sluice-controlplane", present)
		c.there(&appsv1.Deployment{}, "sluice-operator", present)
		c.there(&corev1.Service{}, "sluice-controlplane", present)
		if !present {
			break
		}
		c.there(&appsv1.DaemonSet{}, "sluice-csi-node", false)
		c.helm("upgrade", release, "sluice", "--set", "csi.enabled=true,csi.storageClass.pool=ceph,operator.replicas=3")
		c.there(&appsv1.DaemonSet{}, "sluice-csi-node", true)
		var operator appsv1.Deployment
		c.there(&operator, "sluice-operator", true)
		if operator.Spec.Replicas == nil || *operator.Spec.Replicas != 3 {
			t.Errorf("replicas of the operator after the upgrade: %v", operator.Spec.Replicas)
		}
		c.run("helm", "uninstall", release, "--namespace", namespace, "--wait=false")
	}
	c.run("helm", "uninstall", release+"-crds", "--namespace", namespace, "--wait=false")
	if have := c.definitions(); have != definitions {
		t.Errorf("%d definitions of custom resources are left, and all %d stay", have, definitions)
	}
}
