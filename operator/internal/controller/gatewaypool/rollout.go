package gatewaypool

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/gateway"
	"sluice.dev/sluice/operator/internal/controller/mirror"
)

// step takes one gateway out of service, temporarily or permanently.
type step struct {
	gateway *v1alpha1.Gateway
	why     string
	take    func(context.Context) error
}

// rollOut takes the next step, if there is one and it is allowed, and reports the progress.
func (p *pools) rollOut(ctx context.Context, r *v1alpha1.GatewayPool, gateways []v1alpha1.Gateway) error {
	cordoned, err := p.cordoned(ctx, gateways)
	if err != nil {
		return err
	}
	if err := p.backInService(ctx, gateways, cordoned); err != nil {
		return err
	}
	next := p.next(r, gateways, cordoned)
	before := p.endWait(r)
	out := outOfService(r, gateways, next)
	switch {
	case next == nil && out == "":
		mirror.Condition(r, v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Settled", "", r.Generation)
		return nil
	case next == nil:
		p.keepWait(r, before.expired(time.Now()))
		p.progress(r, "InProgress", out)
		return nil
	case r.Spec.Rollout.Paused:
		p.progress(r, "Paused", next.why+" waits: rollout.paused is set")
		return nil
	case out != "":
		p.keepWait(r, before.expired(time.Now()))
		p.progress(r, "InProgress", fmt.Sprintf("%s waits: %s", next.why, out))
		return nil
	}
	if why, err := p.blocked(ctx, r, next.gateway); err != nil {
		return err
	} else if why != "" {
		p.keepWait(r, before.expired(time.Now()))
		// The pool is reconciled soon again, because no watch reports targets here, and their state may change at any time.
		return &mirror.Problem{Reason: "RolloutBlocked", Message: fmt.Sprintf("%s waits: %s", next.why, why),
			Progressing: "WaitsForRedundancy", Wait: hostsPollInterval}
	}
	stranded, err := p.stranded(ctx, r, gateways)
	if err != nil {
		return err
	}
	return p.waitOrTake(ctx, r, next, before, stranded)
}

func (p *pools) progress(r *v1alpha1.GatewayPool, reason, message string) {
	mirror.Condition(r, v1alpha1.ConditionProgressing, metav1.ConditionTrue, reason, message, r.Generation)
}

// next returns the next step: fewer gateways, then nodes that must be emptied, then a new template. Among gateways with an old
// template, those that do not serve come first, so that a template that does not work can be corrected.
func (p *pools) next(r *v1alpha1.GatewayPool, gateways []v1alpha1.Gateway, cordoned map[string]bool) *step {
	if surplus := len(gateways) - int(r.Spec.Replicas); surplus > 0 {
		last := &gateways[len(gateways)-1]
		if last.DeletionTimestamp != nil {
			return nil // one at a time
		}
		return &step{last, "deleting gateway " + last.Name, func(ctx context.Context) error {
			return client.IgnoreNotFound(p.client.Delete(ctx, last))
		}}
	}
	for i := range gateways {
		if g := &gateways[i]; cordoned[g.Name] && !g.Spec.Maintenance {
			return &step{g, "draining gateway " + g.Name + ", whose node is cordoned", func(ctx context.Context) error {
				return p.change(ctx, g, func() { g.Spec.Maintenance = true })
			}}
		}
	}
	var old *v1alpha1.Gateway
	for i := range gateways {
		if g := &gateways[i]; !updated(r, g) && g.DeletionTimestamp == nil && (old == nil || isServing(old) && !isServing(g)) {
			old = g
		}
	}
	if old == nil {
		return nil
	}
	return &step{old, "giving gateway " + old.Name + " the new template", func(ctx context.Context) error {
		return p.change(ctx, old, func() { old.Spec.Template, old.Spec.Portals = r.Spec.Template, r.Spec.Portals })
	}}
}

func (p *pools) change(ctx context.Context, g *v1alpha1.Gateway, how func()) error {
	before := g.DeepCopy()
	how()
	return p.client.Patch(ctx, g, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// cordoned returns the gateways whose pod runs on a node that accepts no pods.
func (p *pools) cordoned(ctx context.Context, gateways []v1alpha1.Gateway) (map[string]bool, error) {
	found := map[string]bool{}
	for _, g := range gateways {
		if g.Status.Node == "" {
			continue
		}
		node := &corev1.Node{}
		if err := p.client.Get(ctx, types.NamespacedName{Name: g.Status.Node}, node); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		found[g.Name] = node.Spec.Unschedulable
	}
	return found, nil
}

// backInService clears maintenance once the gateway runs on a node that accepts pods.
func (p *pools) backInService(ctx context.Context, gateways []v1alpha1.Gateway, cordoned map[string]bool) error {
	for i := range gateways {
		g := &gateways[i]
		if g.Spec.Maintenance && g.Status.Node != "" && !cordoned[g.Name] && g.DeletionTimestamp == nil {
			if err := p.change(ctx, g, func() { g.Spec.Maintenance = false }); err != nil {
				return err
			}
		}
	}
	return nil
}

// outOfService returns the gateway that is already out of service; empty: none except the next one.
func outOfService(r *v1alpha1.GatewayPool, gateways []v1alpha1.Gateway, next *step) string {
	for i := range gateways {
		g := &gateways[i]
		if next != nil && next.gateway == g {
			continue
		}
		switch {
		case g.DeletionTimestamp != nil:
			return fmt.Sprintf("gateway %s is being deleted", g.Name)
		case g.Spec.Maintenance:
			return fmt.Sprintf("gateway %s is drained for its node's sake", g.Name)
		case !isServing(g) || !current(g):
			return fmt.Sprintf("gateway %s is not ready: %s", g.Name, condition(g).Message)
		}
	}
	if short := int(r.Spec.Replicas) - len(gateways); short > 0 {
		return fmt.Sprintf("%d gateways have yet to be made", short)
	}
	return ""
}

func condition(g *v1alpha1.Gateway) metav1.Condition {
	if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionUnknown, Message: "it is being made"}
}

// isServing reports whether a gateway serves.
func isServing(g *v1alpha1.Gateway) bool {
	return g.DeletionTimestamp == nil && condition(g).Status == metav1.ConditionTrue
}

// updated reports whether a gateway has the pool's template.
func updated(r *v1alpha1.GatewayPool, g *v1alpha1.Gateway) bool {
	return equality.Semantic.DeepEqual(g.Spec.Template, r.Spec.Template) && equality.Semantic.DeepEqual(g.Spec.Portals, r.Spec.Portals)
}

// current reports whether a gateway's pod was made from the gateway's template.
func current(g *v1alpha1.Gateway) bool { return g.Status.Template == gateway.Digest(&g.Spec) }
