package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// cluster runs pods: a scheduler that supports pins, anti-affinity and cordons, and a kubelet whose containers are processes of
// this machine. A node's addresses are addresses of the loopback interface.
type cluster struct {
	t         *testing.T
	stop      context.CancelFunc
	done      chan struct{}
	mutex     sync.Mutex
	processes map[types.UID]*process
	// most has, for each pool, the largest number of pods that were missing, or of gateways that were not ready, at one time
	// since it is watched.
	most map[string]int
	full map[string]int
	// undrained are gateways whose pod was to end while something was on them.
	undrained []string
	// early are gateways that were reported as ready before they had connected for the first time.
	early []string
}

// startCluster creates nodes n1…nN, with an address in 127.0.1.0/24 and one in 127.0.2.0/24.
func startCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	if _, err := os.Stat(filepath.Join(env.bin, "sluice-gateway")); err != nil {
		t.Skip("sluice-gateway is not built: make build")
	}
	for i := 1; i <= nodes; i++ {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i),
			Annotations: map[string]string{v1alpha1.AnnotationSwitch + "red": "red"}}}
		create(t, node)
		node.Spec.Taints = nil // the API server treats new nodes as not ready
		if err := env.client.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		node.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("127.0.1.%d", i)}, {Type: corev1.NodeInternalIP, Address: fmt.Sprintf("127.0.2.%d", i)},
		}
		if err := env.client.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &cluster{t: t, stop: stop, done: make(chan struct{}), processes: map[types.UID]*process{}, most: map[string]int{}, full: map[string]int{}}
	go func() {
		defer close(c.done)
		for ctx.Err() == nil {
			c.look(ctx)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-c.done
		for _, p := range c.processes {
			p.stop()
		}
	})
	return c
}

// look does the work that is due for each pod.
func (c *cluster) look(ctx context.Context) {
	var pods corev1.PodList
	var nodes corev1.NodeList
	if env.client.List(ctx, &pods, client.InNamespace(systemNamespace)) != nil || env.client.List(ctx, &nodes) != nil {
		return
	}
	running := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch p := c.processes[pod.UID]; {
		case pod.DeletionTimestamp != nil:
			if p != nil {
				c.noteUndrained(ctx, pod)
				p.stop()
				delete(c.processes, pod.UID)
			}
			_ = env.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		case pod.Spec.NodeName == "":
			c.schedule(ctx, pod, pods.Items, nodes.Items)
		case p == nil:
			c.run(ctx, pod)
		case p.over():
			c.t.Logf("pod %s ended: %s", pod.Name, tail(p.log))
			delete(c.processes, pod.UID)
		default:
			if pod.Status.Phase != corev1.PodRunning { // the operator has changed the pod meanwhile, and the API refused the status
				c.reportRunning(ctx, pod)
			}
			running[pod.Labels[v1alpha1.LabelGatewayPool]]++
		}
	}
	var gateways v1alpha1.GatewayList
	if env.client.List(ctx, &gateways) != nil {
		return
	}
	serving := map[string]int{}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, g := range gateways.Items {
		if apimeta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady) {
			serving[g.Spec.GatewayPool]++
			if g.Status.Health == "New" {
				c.early = append(c.early, g.Name)
			}
		}
	}
	for pool, full := range c.full {
		c.most[pool] = max(c.most[pool], full-running[pool], full-serving[pool])
	}
}

// noteUndrained asks the control plane whether anything is on the gateway of a pod that is about to end.
func (c *cluster) noteUndrained(ctx context.Context, pod *corev1.Pod) {
	got, err := pb.NewGatewayServiceClient(env.connection).GetGateway(ctx, &pb.GetGatewayRequest{Name: pod.Name})
	if err != nil || got.GetGateway().GetStatus().GetHealth() == pb.GatewayHealth_GATEWAY_HEALTH_DRAINED {
		return // drained, or even deleted
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.undrained = append(c.undrained, pod.Name)
}

// watchPool records from now on how many of a pool's pods are missing at a time.
func (c *cluster) watchPool(pool string, full int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.full[pool], c.most[pool], c.undrained = full, 0, nil
}

func (c *cluster) readyEarly() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.early
}

func (c *cluster) endedUndrained() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.undrained
}

func (c *cluster) missing(pool string) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.most[pool]
}

func (c *cluster) schedule(ctx context.Context, pod *corev1.Pod, pods []corev1.Pod, nodes []corev1.Node) {
	for _, node := range nodes {
		taken := slices.ContainsFunc(pods, func(other corev1.Pod) bool {
			return other.Spec.NodeName == node.Name && other.Labels[v1alpha1.LabelGatewayPool] == pod.Labels[v1alpha1.LabelGatewayPool]
		})
		if taken || node.Spec.Unschedulable || !pinnedTo(pod, node.Name) {
			continue
		}
		_ = env.client.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}})
		pod.Spec.NodeName = node.Name // for the pods that follow
		return
	}
}

func pinnedTo(pod *corev1.Pod, node string) bool {
	if pod.Spec.Affinity.NodeAffinity == nil {
		return true
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.Contains(terms[0].MatchFields[0].Values, node)
}

// addressOf returns the address of a pod, which is its node's.
func addressOf(pod *corev1.Pod) string {
	return "127.0.1." + strings.TrimPrefix(pod.Spec.NodeName, "n")
}

func (c *cluster) run(ctx context.Context, pod *corev1.Pod) {
	address := addressOf(pod)
	container := pod.Spec.Containers[0]
	scratch, err := os.MkdirTemp(env.scratch, "pod-")
	must(err)
	place := strings.NewReplacer("$(NODE_NAME)", pod.Spec.NodeName, "$(POD_IP)", address, "/var/lib/sluice", scratch)
	var arguments []string
	for _, argument := range container.Args {
		arguments = append(arguments, place.Replace(argument))
	}
	p, err := env.start("pod-"+pod.Name, container.Command[0], arguments...)
	must(err)
	c.processes[pod.UID] = p
	c.reportRunning(ctx, pod)
}

// reportRunning stores the status of a pod whose process runs. If the API refuses that, look repeats it.
func (c *cluster) reportRunning(ctx context.Context, pod *corev1.Pod) {
	address, container := addressOf(pod), pod.Spec.Containers[0]
	pod.Status.Phase, pod.Status.PodIP, pod.Status.HostIP = corev1.PodRunning, address, address
	pod.Status.PodIPs, pod.Status.HostIPs = []corev1.PodIP{{IP: address}}, []corev1.HostIP{{IP: address}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container.Name, Image: container.Image, Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_ = env.client.Status().Update(ctx, pod)
}
