package gateway

import (
	"context"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// reasonDrainBlocked is a reason of the control plane: what remains on a gateway has no destination.
const reasonDrainBlocked = "DrainBlocked"

// spare reports whether the gateway's pod may end for a while although the gateway is not drained. Everything that can move has
// moved; it owns no volume; another gateway also serves every target that it exports; and hosts have had time to return to a
// gateway that was away meanwhile. rollout.ignoreRedundancy waives these conditions.
func (g *gateways) spare(ctx context.Context, r *v1alpha1.Gateway, have *pb.Gateway) (bool, error) {
	if !drainBlocked(have) {
		return false, nil // its drain is in progress
	}
	pool := &v1alpha1.GatewayPool{}
	if err := g.client.Get(ctx, types.NamespacedName{Name: r.Spec.GatewayPool}, pool); client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if pool.Spec.Rollout.IgnoreRedundancy {
		return true, nil
	}
	if have.GetStatus().GetVolumesOwned() > 0 {
		return false, nil
	}
	targets, err := ExportedBy(ctx, g.targets, r.Spec.GatewayPool)
	if err != nil {
		return false, err
	}
	for _, t := range targets {
		if alone, err := g.onlyOne(ctx, r.Name, t); err != nil || alone {
			return false, err
		}
	}
	waits, err := g.waitsForHosts(ctx, r, targets)
	return !waits, err
}

func drainBlocked(have *pb.Gateway) bool {
	return slices.ContainsFunc(have.GetStatus().GetConditions(), func(c *pb.Condition) bool {
		return c.GetType() == v1alpha1.ConditionProgressing && c.GetReason() == reasonDrainBlocked
	})
}

// onlyOne reports whether a gateway exports a target that no other serving gateway exports.
func (g *gateways) onlyOne(ctx context.Context, name string, target *pb.Target) (bool, error) {
	exports := false
	for _, path := range target.GetStatus().GetPaths() {
		if path.GetGateway() == name {
			exports = true
			continue
		}
		other := &v1alpha1.Gateway{}
		if err := g.client.Get(ctx, types.NamespacedName{Name: path.GetGateway()}, other); client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if path.GetApplied() && apimeta.IsStatusConditionTrue(other.Status.Conditions, v1alpha1.ConditionReady) {
			return false, nil
		}
	}
	return exports, nil
}
