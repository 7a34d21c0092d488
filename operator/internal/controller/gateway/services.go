package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
)

// services makes one Service for each portal of the gateway. A Service for several gateways would send a host's path to any of
// them, and multipath would fail over from a gateway to itself.
func (g *gateways) services(ctx context.Context, r *v1alpha1.Gateway) error {
	if r.Spec.Template.Network != v1alpha1.NetworkLoadBalancer {
		return nil
	}
	for _, portal := range r.Spec.Portals {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: serviceName(r.Name, portal.Fabric),
		}}
		_, err := controllerutil.CreateOrUpdate(ctx, g.client, service, func() error {
			service.Labels = map[string]string{v1alpha1.LabelGateway: r.Name, v1alpha1.LabelGatewayPool: r.Spec.GatewayPool}
			if service.Annotations == nil {
				service.Annotations = map[string]string{}
			}
			for key, value := range portal.ServiceAnnotations {
				service.Annotations[key] = value
			}
			service.Spec.Type = corev1.ServiceTypeLoadBalancer
			if service.CreationTimestamp.IsZero() { // it is immutable later
				service.Spec.LoadBalancerClass = portal.LoadBalancerClass
			}
			// Only the gateway's own node answers: this avoids a second hop and preserves the hosts' addresses.
			service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			service.Spec.Selector = map[string]string{v1alpha1.LabelGateway: r.Name}
			var nodePort int32
			if len(service.Spec.Ports) == 1 {
				nodePort = service.Spec.Ports[0].NodePort
			}
			service.Spec.Ports = []corev1.ServicePort{{
				Name: "iscsi", Protocol: corev1.ProtocolTCP, Port: portal.Port, TargetPort: intstr.FromInt32(portal.Port), NodePort: nodePort,
			}}
			return controllerutil.SetControllerReference(r, service, g.client.Scheme())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// serviceName returns a name that fits fabrics of any name: a Service's name has at most 63 characters.
func serviceName(gateway, fabric string) string {
	sum := sha256.Sum256([]byte(fabric))
	return gateway + "-" + hex.EncodeToString(sum[:3])
}

// balanced returns the address of a portal behind a load balancer, for hosts; empty: it has none yet.
func (g *gateways) balanced(ctx context.Context, r *v1alpha1.Gateway, portal v1alpha1.PortalTemplate) (string, error) {
	service := &corev1.Service{}
	name := types.NamespacedName{Namespace: g.Namespace, Name: serviceName(r.Name, portal.Fabric)}
	if err := g.client.Get(ctx, name, service); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", err
	}
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			return convert.HostPort(ingress.IP, portal.Port), nil
		}
		if ingress.Hostname != "" {
			return convert.HostPort(ingress.Hostname, portal.Port), nil
		}
	}
	return "", nil
}
