package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controlplane"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Patience is how long a gateway that shall go waits for hosts to log in at others: the CSI driver looks for new portals at least
// every minute and a half. Who has not come by then has one path only, as QEMU's libiscsi, or is not well, and holds up nobody.
const Patience = 2 * time.Minute

// settled is how old a session has to be, and how long its gateway ready, to count as a path: multipathd looks at a path that had
// failed after 5 s, and until a gateway has told its sessions the register has those of the process before it.
const settled = 10 * time.Second

// use is what has paths: an initiator at a target.
type use struct{ initiator, target string }

// Stranded are the hosts that have no path to a target but by one gateway, though others of its pool serve the target, one line
// each. It goes by initiators: a Host may stand for several machines.
func Stranded(name string, pool []v1alpha1.Gateway, targets []*pb.Target, sessions []*pb.Session) []string {
	now := time.Now()
	since := servingSince(name, pool)
	elsewhere := map[string]bool{}
	for _, t := range targets {
		elsewhere[t.GetMeta().GetName()] = slices.ContainsFunc(t.GetStatus().GetPaths(), func(path *pb.TargetPath) bool {
			_, serves := since[path.GetGateway()]
			return serves && path.GetApplied()
		})
	}
	lines, safe := map[use]string{}, map[use]bool{}
	for _, session := range sessions {
		s := session.GetStatus()
		of := use{s.GetInitiator(), s.GetTarget()}
		at, serves := since[s.GetGateway()]
		switch {
		case s.GetGateway() == name && elsewhere[of.target]:
			lines[of] = fmt.Sprintf("host %s (%s) on target %s", s.GetHost(), s.GetInitiator(), s.GetTarget())
		case serves && now.Sub(at) >= settled && now.Sub(s.GetLoginTime().AsTime()) >= settled:
			safe[of] = true
		}
	}
	for of := range safe {
		delete(lines, of)
	}
	return slices.Sorted(maps.Values(lines))
}

// servingSince are the gateways that serve and shall go on serving, but for one, each with since when.
func servingSince(but string, pool []v1alpha1.Gateway) map[string]time.Time {
	since := map[string]time.Time{}
	for i := range pool {
		g := &pool[i]
		leaves := g.Name == but || g.DeletionTimestamp != nil || g.Spec.Drain || g.Spec.Maintenance
		c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
		if !leaves && c != nil && c.Status == metav1.ConditionTrue {
			since[g.Name] = c.LastTransitionTime.Time
		}
	}
	return since
}

// waitsForHosts says that hosts have yet to come back to a gateway that was away while this one was drained. Those that had no
// other path before, the pool has waited for.
func (g *gateways) waitsForHosts(ctx context.Context, r *v1alpha1.Gateway, targets []*pb.Target) (bool, error) {
	var all v1alpha1.GatewayList
	if err := g.client.List(ctx, &all); err != nil {
		return false, err
	}
	pool := slices.DeleteFunc(all.Items, func(o v1alpha1.Gateway) bool { return o.Spec.GatewayPool != r.Spec.GatewayPool })
	news := false
	for _, at := range servingSince(r.Name, pool) {
		news = news || time.Since(at) < Patience
	}
	if !news {
		return false, nil
	}
	sessions, err := controlplane.Sessions(ctx, g.sessions)
	return len(Stranded(r.Name, pool, targets, sessions)) > 0, err
}
