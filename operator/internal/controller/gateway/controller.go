// Package gateway is the controller of Gateways. Each has a pod, and outlives it. In reading order: controller.go (the object in
// the control plane), pods.go (making and replacing the pod), drain.go (a gateway is drained before its pod ends), spare.go (or
// its pod is expendable), hosts.go (which hosts use it), portals.go (addresses), render.go (the pod itself), spread.go (over
// which failure domains), services.go (load balancers).
package gateway

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	sluice "sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=gateways,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=gateways/status;gateways/finalizers,verbs=get;update;patch
// +kubebuilder:rbac:groups="",namespace=sluice-system,resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",namespace=sluice-system,resources=services,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// Options configure the gateways' pods.
type Options struct {
	// Namespace of gateways' pods and Services.
	Namespace string
	// ControlPlane are the replicas to which gateways connect, as host:port.
	ControlPlane []string
	// Authority is the Secret of the CA that signs gateways' certificates; empty: another component makes their Secrets.
	Authority string
	// Insecure lets gateways connect to a control plane on loopback without certificates.
	Insecure bool
	// SeccompProfile is a file below the kubelet's seccomp directory on each node, for gateways whose pool names no profile;
	// empty: they have no filter.
	SeccompProfile string
}

type gateways struct {
	Options
	client   client.Client
	service  pb.GatewayServiceClient
	targets  pb.TargetServiceClient
	sessions pb.SessionServiceClient
}

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, connection mirror.ControlPlane, options Options) error {
	g := &gateways{Options: options, client: mgr.GetClient(), service: pb.NewGatewayServiceClient(connection),
		targets: pb.NewTargetServiceClient(connection), sessions: pb.NewSessionServiceClient(connection)}
	return mirror.Setup(mgr, connection.Findings, mirror.Managed[*v1alpha1.Gateway, *pb.Gateway]{
		Noun: mirror.Gateways(connection),
		Want: g.want, Show: convert.ShowGateway, HasReadyCondition: true,
		Before: g.pods, After: g.settle, Leave: g.drainForDeletion, AfterDelete: g.deleteOwnPod,
	}, func(b *builder.Builder, c client.Client) {
		b.Owns(&corev1.Pod{}).Owns(&corev1.Service{}).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, node client.Object) []reconcile.Request {
				return onNode(ctx, c, node.GetName())
			}), builder.WithPredicates(nodeChanged))
	})
}

// onNode returns the gateways whose pod runs on a node.
func onNode(ctx context.Context, c client.Client, node string) []reconcile.Request {
	var all v1alpha1.GatewayList
	if err := c.List(ctx, &all); err != nil {
		return nil // the cache has stopped
	}
	var found []reconcile.Request
	for _, r := range all.Items {
		if r.Status.Node == node {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: r.Name}})
		}
	}
	return found
}

// want returns the gateway with the addresses of its pod. While no pod has addresses, the object in the control plane stays
// unchanged.
func (g *gateways) want(ctx context.Context, r *v1alpha1.Gateway, _ *mirror.SecretReader) (*pb.Gateway, error) {
	spec := convert.GatewaySpec(r)
	pod, err := g.pod(ctx, r)
	if err != nil {
		return nil, err
	}
	at, err := g.location(ctx, r, pod)
	if err != nil {
		return nil, err
	}
	if at == nil {
		known, err := g.service.GetGateway(ctx, &pb.GetGatewayRequest{Name: r.Name})
		if sluice.IsNotFound(err) {
			return nil, podProblem(pod)
		} else if err != nil {
			return nil, err
		}
		was := known.GetGateway().GetSpec()
		spec.Node, spec.Portals, spec.ForwardingAddress = was.GetNode(), was.GetPortals(), was.GetForwardingAddress()
		return &pb.Gateway{Spec: spec}, nil
	}
	spec.Node, spec.Portals, spec.ForwardingAddress = at.node, at.portals, at.forwarding
	return &pb.Gateway{Spec: spec}, nil
}
