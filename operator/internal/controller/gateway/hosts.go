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

// Patience is how long a gateway that shall go waits for hosts to log in at others: the CSI driver looks for new portals at least
// every minute and a half. Who has not come by then has one path only, as QEMU's libiscsi, or is not well, and holds up nobody.
const Patience = 2 * time.Minute

// settled is how old a session has to be, and how long its gateway ready, to count as a path: multipathd looks at a path that had
// failed after 5 s, and until a gateway has told its sessions the register has those of the process before it.
const settled = 10 * time.Second

// Use is what has paths: a host's initiator at a target. It goes by initiators, for a Host may stand for several machines.
type Use struct{ Host, Initiator, Target string }

func (u Use) String() string {
	return fmt.Sprintf("host %s (%s) on target %s", u.Host, u.Initiator, u.Target)
}

// Stranded are, by gateway, the uses that have no path but by it, though others of its pool serve the target.
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
	at, safe := map[Use][]string{}, map[Use][]string{} // at which gateways there are sessions, and which of them count
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

// servingSince are the gateways that serve and shall go on serving, each with since when.
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

// waitsForHosts says that hosts have yet to come back to a gateway that was away while this one was drained. Those that had no
// other path before that, the pool has waited for.
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

// drainingSince is since when a gateway does not serve any more; the beginning of time, where it does.
func drainingSince(r *v1alpha1.Gateway) time.Time {
	if c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionFalse {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
