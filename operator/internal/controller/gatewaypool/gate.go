package gatewaypool

import (
	"context"
	"fmt"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/gateway"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// blocked returns why a gateway must not be taken out of service now; empty: it may. A gateway that does not serve may always.
func (p *pools) blocked(ctx context.Context, r *v1alpha1.GatewayPool, g *v1alpha1.Gateway) (string, error) {
	if r.Spec.Rollout.IgnoreRedundancy || g.Status.Health == "" || g.Status.Health == "New" {
		return "", nil
	}
	targets, err := gateway.ExportedBy(ctx, p.targets, r.Name)
	if err != nil {
		return "", err
	}
	for _, t := range targets {
		if why := missingForRedundancy(t); why != "" {
			return fmt.Sprintf("target %s would lose a path it cannot spare: %s. (rollout.ignoreRedundancy continues regardless)",
				t.GetMeta().GetName(), why), nil
		}
	}
	return "", nil
}

// missingForRedundancy returns what a target lacks to lose a path. If it has all its wanted paths and is still not redundant, another switch or
// node is missing. No order of a rollout corrects that, and planned moves do not need it.
func missingForRedundancy(t *pb.Target) string {
	if t.GetSpec().GetPaths() < 2 {
		return "" // its user wants no redundancy
	}
	conditions := map[string]*pb.Condition{}
	for _, c := range t.GetStatus().GetConditions() {
		conditions[c.GetType()] = c
	}
	redundant := conditions[v1alpha1.ConditionPathsRedundant]
	if redundant.GetStatus() == pb.ConditionStatus_CONDITION_STATUS_TRUE {
		return ""
	}
	applied := int32(0)
	for _, path := range t.GetStatus().GetPaths() {
		if path.GetApplied() {
			applied++
		}
	}
	if applied < t.GetSpec().GetPaths() {
		return fmt.Sprintf("%d of %d gateways export it", applied, t.GetSpec().GetPaths())
	}
	for _, kind := range []string{v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing} {
		if c := conditions[kind]; c.GetStatus() != pb.ConditionStatus_CONDITION_STATUS_FALSE {
			return kind + ": " + c.GetReason() + " " + c.GetMessage()
		}
	}
	return ""
}
