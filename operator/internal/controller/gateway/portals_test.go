package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"sluice.dev/sluice/operator/api/v1alpha1"
)

func multusPod(status string) (*gateways, *v1alpha1.Gateway, *corev1.Pod, *corev1.Node) {
	g := &gateways{Options: Options{Namespace: "sluice-system", ControlPlane: []string{"controlplane:7460"}}}
	r := &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: "pool-0"}, Spec: v1alpha1.GatewaySpec{
		GatewayPool: "pool", Template: v1alpha1.GatewayTemplate{Image: "sluice", Network: v1alpha1.NetworkMultus},
		Portals: []v1alpha1.PortalTemplate{{Fabric: "red", Port: 3260, NetworkAttachment: "storage/red"}, {Fabric: "blue", Port: 3260, NetworkAttachment: "blue"}},
	}}
	pod := g.render(r, nil)
	pod.Annotations[annotationNetworkStatus] = status
	return g, r, pod, &corev1.Node{}
}

func TestWithMultusPortalsListenWhereItsAnswerSays(t *testing.T) {
	g, r, pod, node := multusPod(`[{"name": "cbr0", "ips": ["10.0.0.5"], "default": true},
		{"name": "storage/red", "interface": "net1", "ips": ["192.0.2.5"]}, {"name": "sluice-system/blue", "ips": ["2001:db8::5"]}]`)
	if asked := pod.Annotations[annotationNetworks]; asked != "storage/red,sluice-system/blue" {
		t.Errorf("asked for %q", asked)
	}
	for i, want := range []string{"192.0.2.5:3260", "[2001:db8::5]:3260"} {
		portal, err := g.portal(context.Background(), r, r.Spec.Portals[i], pod, node)
		if err != nil || portal.GetListen() != want || portal.GetAdvertised() != want {
			t.Errorf("wanted %s, have %v, %v", want, portal, err)
		}
	}
}

func TestWithMultusAPortalWaitsForTheAnswerAndTellsOfANetworkThatIsNotInIt(t *testing.T) {
	g, r, pod, node := multusPod("")
	if portal, err := g.portal(context.Background(), r, r.Spec.Portals[0], pod, node); portal != nil || err != nil {
		t.Errorf("%v %v", portal, err)
	}
	g, r, pod, node = multusPod(`[{"name": "cbr0", "ips": ["10.0.0.5"]}]`)
	_, err := g.portal(context.Background(), r, r.Spec.Portals[1], pod, node)
	if err == nil || !strings.Contains(err.Error(), "no address on the network sluice-system/blue") {
		t.Errorf("have %v", err)
	}
}

func TestAPodHasItsGatewaysCertificateAndNoRightItDoesNotNeed(t *testing.T) {
	_, _, pod, _ := multusPod("")
	container := pod.Spec.Containers[0]
	if pod.Spec.Volumes[1].Secret.SecretName != "pool-0-tls" || !slices.Contains(container.Args, tlsPath+"/tls.key") {
		t.Errorf("no certificate: %v, %v", pod.Spec.Volumes, container.Args)
	}
	if *container.SecurityContext.AllowPrivilegeEscalation || container.SecurityContext.Capabilities.Drop[0] != "ALL" ||
		*pod.Spec.AutomountServiceAccountToken || pod.Spec.HostNetwork || pod.Spec.HostPID {
		t.Errorf("rights: %+v", pod.Spec)
	}
}

func TestAPinnedGatewayStaysOnItsNodeBesideNoOtherOfItsPool(t *testing.T) {
	g := &gateways{}
	r := &v1alpha1.Gateway{Spec: v1alpha1.GatewaySpec{Node: "n1", GatewayPool: "pool", Template: v1alpha1.GatewayTemplate{
		Network: v1alpha1.NetworkHost, LocalDirectories: []string{"/srv/sluice"}}}}
	pod := g.render(r, nil)
	affinity := pod.Spec.Affinity
	if affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0] != "n1" ||
		len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) != 1 || pod.Spec.NodeName != "" {
		t.Errorf("%+v", affinity)
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil && v.HostPath.Path == "/srv/sluice" }) {
		t.Errorf("no local directory: %+v", pod.Spec.Volumes)
	}
}

func TestAServiceWithoutAClassHasTheClustersOwn(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range []*string{nil, new("example.org/lb")} {
		g := &gateways{client: fake.NewClientBuilder().WithScheme(scheme).Build(), Options: Options{Namespace: "n"}}
		r := &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Spec: v1alpha1.GatewaySpec{
			Portals:  []v1alpha1.PortalTemplate{{Fabric: "red", Port: 3260, LoadBalancerClass: class}},
			Template: v1alpha1.GatewayTemplate{Network: v1alpha1.NetworkLoadBalancer}}}
		if err := g.services(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		var service corev1.Service
		err := g.client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: serviceName("g", "red")}, &service)
		if got := service.Spec.LoadBalancerClass; err != nil || (got == nil) != (class == nil) || got != nil && *got != *class {
			t.Errorf("class %v, want %v (%v)", got, class, err)
		}
	}
}
