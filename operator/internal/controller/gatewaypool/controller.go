// Package gatewaypool is the controller of GatewayPools. In reading order: controller.go (the phases of a pool), gateways.go
// (making Gateways), rollout.go (which gateway is next taken out of service, one at a time), gate.go (whether one may be),
// hosts.go (the hosts for which a rollout waits), budget.go (what Kubernetes may evict).
package gatewaypool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/convert"
	"sluice.dev/sluice/operator/internal/controller/gateway"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/csi/leftovers"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// +kubebuilder:rbac:groups=sluice.dev,resources=gatewaypools,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=gatewaypools/status;gatewaypools/finalizers,verbs=get;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=gateways,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=policy,namespace=sluice-system,resources=poddisruptionbudgets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

type pools struct {
	client    client.Client
	targets   pb.TargetServiceClient
	hosts     pb.HostServiceClient
	sessions  pb.SessionServiceClient
	recorder  events.EventRecorder
	namespace string
	// waits has the state of each pool's wait for hosts, by the pool's uid.
	waits sync.Map
}

// Setup adds the controller to a manager; gateways' pods are in the namespace.
func Setup(mgr manager.Manager, connection mirror.ControlPlane, namespace string) error {
	p := &pools{client: mgr.GetClient(), targets: pb.NewTargetServiceClient(connection),
		hosts: pb.NewHostServiceClient(connection), sessions: pb.NewSessionServiceClient(connection),
		recorder: mgr.GetEventRecorder("sluice-operator"), namespace: namespace}
	return mirror.Setup(mgr, connection.Findings, mirror.Managed[*v1alpha1.GatewayPool, *pb.GatewayPool]{
		Noun: mirror.GatewayPools(connection),
		Want: want, Show: convert.ShowGatewayPool, Progresses: true, After: p.after, Leave: p.deleteGateways,
	}, func(b *builder.Builder, c client.Client) {
		all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return requestsForAll(ctx, c) })
		b.Owns(&v1alpha1.Gateway{}).Owns(&policyv1.PodDisruptionBudget{}).
			Watches(&corev1.Node{}, all, builder.WithPredicates(cordonChanged))
	})
}

// cordonChanged passes nodes that appear, disappear, or change whether they accept pods.
var cordonChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	from, _ := e.ObjectOld.(*corev1.Node)
	to, _ := e.ObjectNew.(*corev1.Node)
	return from == nil || to == nil || from.Spec.Unschedulable != to.Spec.Unschedulable ||
		!equality.Semantic.DeepEqual(from.Spec.Taints, to.Spec.Taints) || !maps.Equal(from.Labels, to.Labels)
}}

func requestsForAll(ctx context.Context, c client.Client) []reconcile.Request {
	var all v1alpha1.GatewayPoolList
	if err := c.List(ctx, &all); err != nil {
		return nil // the cache has stopped
	}
	var found []reconcile.Request
	for _, r := range all.Items {
		found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: r.Name}})
	}
	return found
}

func want(_ context.Context, r *v1alpha1.GatewayPool, _ *mirror.SecretReader) (*pb.GatewayPool, error) {
	return &pb.GatewayPool{Spec: convert.GatewayPoolSpec(r)}, nil
}

// after makes the pool's gateways, and then takes at most one of them out of service.
func (p *pools) after(ctx context.Context, r *v1alpha1.GatewayPool, _ *pb.GatewayPool) error {
	r.Status.Selector = v1alpha1.LabelGatewayPool + "=" + r.Name
	if err := p.budget(ctx, r); err != nil {
		return err
	}
	gateways, err := p.gateways(ctx, r)
	if err != nil {
		return err
	}
	count(r, gateways)
	if err := p.make(ctx, r, gateways); err != nil {
		return err
	}
	err = p.rollOut(ctx, r, gateways)
	var later *mirror.RequeueAfter
	if err != nil && !errors.As(err, &later) {
		return err
	}
	return cmp.Or(missingGateways(r), err)
}

// gateways returns the pool's gateways, by ordinal.
func (p *pools) gateways(ctx context.Context, r *v1alpha1.GatewayPool) ([]v1alpha1.Gateway, error) {
	var all v1alpha1.GatewayList
	if err := p.client.List(ctx, &all); err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(all.Items, func(g v1alpha1.Gateway) bool { return g.Spec.GatewayPool != r.Name })
	slices.SortFunc(ours, func(a, b v1alpha1.Gateway) int {
		if n := ordinal(a.Name) - ordinal(b.Name); n != 0 {
			return n
		}
		return strings.Compare(a.Name, b.Name)
	})
	return ours, nil
}

func count(r *v1alpha1.GatewayPool, gateways []v1alpha1.Gateway) {
	r.Status.Replicas, r.Status.ReadyReplicas, r.Status.UpdatedReplicas = int32(len(gateways)), 0, 0
	for i := range gateways {
		if isServing(&gateways[i]) {
			r.Status.ReadyReplicas++
		}
		if updated(r, &gateways[i]) && current(&gateways[i]) {
			r.Status.UpdatedReplicas++
		}
	}
}

// missingGateways reports whether the pool has the wanted gateways.
func missingGateways(r *v1alpha1.GatewayPool) error {
	if ready, wanted := r.Status.ReadyReplicas, r.Spec.Replicas; ready < wanted {
		mirror.Condition(r, v1alpha1.ConditionDegraded, metav1.ConditionTrue, "FewerGateways",
			"fewer gateways serve than are wanted; `kubectl get gateways.sluice.dev` says why", r.Generation)
		return mirror.Problemf("GatewaysNotReady", "%d of %d gateways are ready", ready, wanted)
	}
	mirror.Condition(r, v1alpha1.ConditionDegraded, metav1.ConditionFalse, "AllGateways", "", r.Generation)
	return nil
}

// deletionPollInterval is the interval for targets that are being deleted, because no watch reports them here.
const deletionPollInterval = time.Second

// deleteGateways deletes the pool's gateways, unless a target still needs them.
func (p *pools) deleteGateways(ctx context.Context, r *v1alpha1.GatewayPool, _ *pb.GatewayPool) error {
	if err := p.exportNothing(ctx, r); err != nil {
		return err
	}
	gateways, err := p.gateways(ctx, r)
	if err != nil {
		return err
	}
	for i := range gateways {
		if gateways[i].DeletionTimestamp == nil {
			if err := p.client.Delete(ctx, &gateways[i]); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	p.endWait(r)
	if len(gateways) > 0 {
		return mirror.Problemf(mirror.ReasonDeleting, "%d gateways are being drained and deleted", len(gateways))
	}
	return nil
}

// exportNothing returns which targets still need the pool. If only empty targets of the CSI driver remain, it deletes them, with
// the driver's unused Hosts.
func (p *pools) exportNothing(ctx context.Context, r *v1alpha1.GatewayPool) error {
	all, err := gateway.ExportedBy(ctx, p.targets, r.Name)
	if err != nil {
		return err
	}
	var needed []string
	pods := ""
	for _, t := range all {
		if leftovers.Idle(t) {
			continue
		}
		needed = append(needed, "Target "+t.GetMeta().GetName())
		if leftovers.Mine(t.GetMeta()) {
			pods = "; for csi.*, end the pods that have their volumes"
		}
	}
	if len(needed) > 0 {
		return mirror.Problemf(mirror.ReasonDeletionBlocked, "%d targets are exported by this pool (%s): delete them, or let another "+
			"pool export them, first%s", len(needed), strings.Join(needed[:min(3, len(needed))], ", "), pods)
	}
	for _, t := range all {
		if err := leftovers.Release(ctx, p.targets, t); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return &mirror.Problem{Reason: mirror.ReasonDeleting, Wait: deletionPollInterval,
			Message: fmt.Sprintf("%d targets that the CSI driver kept are being deleted", len(all))}
	}
	return leftovers.ReleaseHosts(ctx, p.hosts)
}
