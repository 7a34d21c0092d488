package gateway

import (
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Patience is the time for which a gateway that must leave waits for hosts to log in at others. The CSI driver searches for new
// portals at least every minute and a half. A host that has not logged in by then has only one path, such as QEMU's libiscsi, or
// is not well, and does not delay the rollout.
const Patience = 2 * time.Minute

// settled is the minimum age of a session, and of its gateway's readiness, for the session to count as a path. multipathd checks
// a failed path after 5 s, and until a gateway has reported its sessions the register has those of its former process.
const settled = 10 * time.Second

// Use identifies a user of paths: a host's initiator at a target. It uses initiators, because a Host may represent several
// machines.
type Use struct{ Host, Initiator, Target string }

func (u Use) String() string {
	return fmt.Sprintf("host %s (%s) on target %s", u.Host, u.Initiator, u.Target)
}

// Stranded returns, by gateway, the uses whose only path is through that gateway, although others of its pool serve the target.
func Stranded(pool []v1alpha1.Gateway, targets []*pb.Target, sessions []*pb.Session) map[string][]Use {
	now, since := time.Now(), servingSince(pool)
	serving := map[string][]string{} // by target
	for _, t := range targets {
		for _, path := range t.GetStatus().GetPaths() {
			if _, serves := since[path.GetGateway()]; serves && path.GetApplied() {
				serving[t.GetMeta().GetName()] = append(serving[t.GetMeta().GetName()], path.GetGateway())
			}
		}
	}
	at, safe := map[Use][]string{}, map[Use][]string{} // the gateways with sessions, and those whose sessions count
	for _, session := range sessions {
		s := session.GetStatus()
		of := Use{s.GetHost(), s.GetInitiator(), s.GetTarget()}
		at[of] = append(at[of], s.GetGateway())
		ready, serves := since[s.GetGateway()]
		if serves && now.Sub(ready) >= settled && now.Sub(s.GetLoginTime().AsTime()) >= settled {
			safe[of] = append(safe[of], s.GetGateway())
		}
	}
	alone := map[string][]Use{}
	for of, gateways := range at {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(gateways))) {
			other := func(gateway string) bool { return gateway != name }
			if slices.ContainsFunc(serving[of.Target], other) && !slices.ContainsFunc(safe[of], other) {
				alone[name] = append(alone[name], of)
			}
		}
	}
	return alone
}

// servingSince returns the gateways that serve and are to continue, each with the time since when.
func servingSince(pool []v1alpha1.Gateway) map[string]time.Time {
	since := map[string]time.Time{}
	for i := range pool {
		g := &pool[i]
		leaves := g.DeletionTimestamp != nil || g.Spec.Drain || g.Spec.Maintenance
		c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
		if !leaves && c != nil && c.Status == metav1.ConditionTrue {
			since[g.Name] = c.LastTransitionTime.Time
		}
	}
	return since
}

// waitsForHosts reports whether hosts have yet to return to a gateway that was away while this one was drained. The pool has
// already waited for hosts that had no other path before that.
func (g *gateways) waitsForHosts(ctx context.Context, r *v1alpha1.Gateway, targets []*pb.Target) (bool, error) {
	var all v1alpha1.GatewayList
	if err := g.client.List(ctx, &all); err != nil {
		return false, err
	}
	pool := slices.DeleteFunc(all.Items, func(o v1alpha1.Gateway) bool { return o.Spec.GatewayPool != r.Spec.GatewayPool })
	news, begun := false, drainingSince(r)
	for name, at := range servingSince(pool) {
		news = news || name != r.Name && at.After(begun) && time.Since(at) < Patience
	}
	if !news {
		return false, nil
	}
	sessions, err := Sessions(ctx, g.sessions)
	return len(Stranded(pool, targets, sessions)[r.Name]) > 0, err
}

// drainingSince returns the time since which a gateway no longer serves; the zero time if it serves.
func drainingSince(r *v1alpha1.Gateway) time.Time {
	if c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionFalse {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
