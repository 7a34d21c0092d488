package capacity_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"

	"sluice.dev/sluice/tests/netns"
)

const (
	driver      = "csi.sluice.dev"
	topologyKey = "topology.csi.sluice.dev/node"
	class       = "own"
	namespace   = "default"
	// selectedNode is the annotation in which the scheduler tells the provisioner its decision.
	selectedNode = "volume.kubernetes.io/selected-node"
)

// kubernetes is a real API server with a real scheduler and the controller that binds claims, and the provisioner beside the CSI driver's
// controller. No kubelet runs, so pods are placed and never started.
type kubernetes struct {
	client.Client
	processes []*netns.Process
}

// startKubernetes starts the programs of .ci/kubernetes/build. The nodes have the topology that the node plugin reports.
func startKubernetes(t *testing.T, s *started, nodes ...string) *kubernetes {
	t.Helper()
	programs := os.Getenv("KUBEBUILDER_ASSETS")
	if programs == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: `make test-csi` builds the programs of Kubernetes and sets it")
	}
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
	made, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	k := &kubernetes{Client: made}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	k.describe(t, nodes)
	k.run(t, s, filepath.Join(programs, "kube-controller-manager"), "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=persistentvolume-binder-controller")
	k.run(t, s, filepath.Join(programs, "kube-scheduler"), "--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0")
	// As in the chart, but no Deployment owns the objects, and a change is seen sooner.
	k.run(t, s, filepath.Join(programs, "csi-provisioner"), "--kubeconfig", kubeconfig, "--csi-address", filepath.Join(s.Directory, "controller.sock"),
		"--extra-create-metadata", "--feature-gates=Topology=true", "--timeout=60s", "--enable-capacity", "--capacity-ownerref-level=-1",
		"--capacity-poll-interval=1s")
	return k
}

func (k *kubernetes) run(t *testing.T, s *started, program string, flags ...string) {
	t.Helper()
	name := filepath.Base(program)
	process := &netns.Process{Name: name, Log: filepath.Join(s.Directory, name+".log"), Arguments: append([]string{program}, flags...),
		Environment: []string{"NAMESPACE=" + namespace}}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Kill()
		if t.Failed() {
			t.Logf("%s: %s", name, process.LogTail(20))
		}
	})
	k.processes = append(k.processes, process)
}

// describe creates the nodes, the driver and its class.
func (k *kubernetes) describe(t *testing.T, nodes []string) {
	t.Helper()
	yes, waits := true, storagev1.VolumeBindingWaitForFirstConsumer
	objects := []client.Object{
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &yes, StorageCapacity: &yes}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: driver, VolumeBindingMode: &waits,
			Parameters: map[string]string{"poolSelector": selector}},
	}
	for _, name := range nodes {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{topologyKey: name, corev1.LabelHostname: name}}},
			&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
				Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: name, TopologyKeys: []string{topologyKey}}}}})
	}
	for _, object := range objects {
		if err := k.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("100")}
	for _, name := range nodes {
		node := &corev1.Node{}
		if err := k.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
			t.Fatal(err)
		}
		// A new node is not schedulable before its kubelet is Ready.
		node.Spec.Taints = nil
		if err := k.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		node.Status.Capacity, node.Status.Allocatable = room, room
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := k.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
}

// capacities returns the largest volume of each node, as the provisioner has published it for the class.
func (k *kubernetes) capacities(ctx context.Context) (map[string]int64, error) {
	list := &storagev1.CSIStorageCapacityList{}
	if err := k.List(ctx, list); err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, each := range list.Items {
		if each.StorageClassName == class && each.MaximumVolumeSize != nil {
			sizes[each.NodeTopology.MatchLabels[topologyKey]] = each.MaximumVolumeSize.Value()
		}
	}
	return sizes, nil
}

// pod creates a pod with a claim of the class; `node` pins it.
func (k *kubernetes) pod(t *testing.T, name, node string) {
	t.Helper()
	storageClass, block := class, corev1.PersistentVolumeBlock
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &storageClass, VolumeMode: &block,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "none.example/none", VolumeDevices: []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/disk"}}}},
		Volumes: []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}}}
	if node != "" {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	for _, object := range []client.Object{claim, pod} {
		if err := k.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// provisioned returns the nodes from which the volume of a claim is accessible, once the provisioner has created it.
func (k *kubernetes) provisioned(ctx context.Context, name string) ([]string, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim); err != nil {
		return nil, err
	}
	list := &corev1.PersistentVolumeList{}
	if err := k.List(ctx, list); err != nil {
		return nil, err
	}
	for _, volume := range list.Items {
		if of := volume.Spec.ClaimRef; of == nil || of.UID != claim.UID {
			continue
		}
		var nodes []string
		for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
			for _, expression := range term.MatchExpressions {
				nodes = append(nodes, expression.Values...)
			}
		}
		return append(nodes, "selected "+claim.Annotations[selectedNode]), nil
	}
	return nil, fmt.Errorf("claim %s has no volume yet; the scheduler selected %q", name, claim.Annotations[selectedNode])
}

// unschedulable returns why the scheduler does not place a pod.
func (k *kubernetes) unschedulable(ctx context.Context, name string) (string, error) {
	pod := &corev1.Pod{}
	if err := k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		return "", err
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return condition.Message, nil
		}
	}
	return "", fmt.Errorf("pod %s is not found to be unschedulable: %v", name, pod.Status.Conditions)
}

// D8, with the programs of Kubernetes. Without storageCapacity the scheduler spreads the pods over both nodes.
func TestKubernetesPlacesPodsOnTheNodeWhosePoolHasRoom(t *testing.T) {
	empty, filled := small(t), small(t)
	s := start(t)
	s.localPool(t, "roomy", "node-1", empty)
	s.localPool(t, "full", "node-2", filled)
	if err := filled.Fill(); err != nil {
		t.Fatal(err)
	}
	k := startKubernetes(t, s, "node-1", "node-2")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if err := netns.Until(ctx, func() error {
		sizes, err := k.capacities(ctx)
		if room, published := sizes["node-2"]; err == nil && (sizes["node-1"] < size || !published || room >= size) {
			err = fmt.Errorf("node-1 is empty and node-2 is full, and their capacities are %v", sizes)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}

	k.pod(t, "pinned", "node-2")
	names := []string{"first", "second", "third"}
	for _, name := range names {
		k.pod(t, name, "")
	}
	for _, name := range names {
		if err := netns.Until(ctx, func() error {
			nodes, err := k.provisioned(ctx, name)
			if err == nil && strings.Join(nodes, ", ") != "node-1, selected node-1" {
				t.Fatalf("the volume of %s is accessible from %v", name, nodes)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := netns.Until(ctx, func() error {
		why, err := k.unschedulable(ctx, "pinned")
		if err == nil && !strings.Contains(why, "did not have enough free storage") {
			err = fmt.Errorf("pod pinned is unschedulable: %s", why)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
