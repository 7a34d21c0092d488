package gatewaypool

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/gateway"
	"sluice.dev/sluice/operator/internal/controller/mirror"
	"sluice.dev/sluice/operator/internal/controlplane"
)

// lookForHosts is how often sessions are looked at while hosts are waited for: no watch wakes a pool for them.
const lookForHosts = 4 * time.Second

// named is how many hosts a message names.
const named = 5

// wait is for hosts, before a gateway is taken out of service, since a time. It is kept in memory: after a restart of the operator
// it begins anew, which takes time and no paths.
type wait struct {
	gateway string
	since   time.Time
}

// endWait ends what a pool waits with and returns it. Whoever still waits begins it again: a rollout that was paused, or blocked
// otherwise, finds the hosts as they are then.
func (p *pools) endWait(r *v1alpha1.GatewayPool) wait {
	before, _ := p.waits.LoadAndDelete(r.UID)
	w, _ := before.(wait)
	return w
}

// stranded are the hosts that have no path but by a gateway. Sessions of one that does not serve are over, whatever the register has.
func (p *pools) stranded(ctx context.Context, r *v1alpha1.GatewayPool, g *v1alpha1.Gateway, gateways []v1alpha1.Gateway,
) ([]string, error) {
	switch g.Status.Health {
	case "", "New", "Drained", "Dead":
		return nil, nil
	}
	if r.Spec.Rollout.IgnoreRedundancy {
		return nil, nil
	}
	targets, err := controlplane.ExportedBy(ctx, p.targets, r.Name)
	if err != nil {
		return nil, err
	}
	sessions, err := controlplane.Sessions(ctx, p.sessions)
	if err != nil {
		return nil, err
	}
	return gateway.Stranded(g.Name, gateways, targets, sessions), nil
}

// waitOrTake waits for hosts that have no other path before it takes a step, for as long as they are waited for.
func (p *pools) waitOrTake(ctx context.Context, r *v1alpha1.GatewayPool, next *step, before wait, alone []string) error {
	if before.gateway != next.gateway.Name {
		before = wait{next.gateway.Name, time.Now()}
	}
	p.waits.Store(r.UID, before)
	hosts := strings.Join(alone[:min(named, len(alone))], ", ")
	if more := len(alone) - named; more > 0 {
		hosts += fmt.Sprintf(" and %d more", more)
	}
	until := before.since.Add(gateway.Patience)
	if time.Now().Before(until) {
		p.progress(r, "WaitsForHosts", fmt.Sprintf("%s waits, until %s at most, for hosts that have no path by another gateway "+
			"yet: %s. (rollout.ignoreRedundancy goes on at once)", next.why, until.UTC().Format(time.RFC3339), hosts))
		return &mirror.Later{Wait: lookForHosts}
	}
	message := fmt.Sprintf("%s: hosts are not waited for any longer that have no path by another gateway: %s", next.why, hosts)
	p.progress(r, "InProgress", message)
	if err := next.take(ctx); err != nil {
		return err // its time stays over
	}
	p.endWait(r)
	mirror.Tell(p.recorder, r, corev1.EventTypeWarning, "HostsLosePath", message)
	return nil
}
