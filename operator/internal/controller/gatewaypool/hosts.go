package gatewaypool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/operator/api/v1alpha1"
	"sluice.dev/sluice/operator/internal/controller/gateway"
	"sluice.dev/sluice/operator/internal/controller/mirror"
)

// hostsPollInterval is the interval at which sessions are read while a pool waits for hosts, because no watch reports them.
const hostsPollInterval = 4 * time.Second

// named bounds the hosts that a message names.
const named = 5

// wait is a rollout's state about hosts with only one path: the gateway that waits for them, since when, and since when each host
// is in this state at any gateway while all serve. A host that has had the full time either wants one path or is not well, and
// the rollout does not wait for it again at each gateway. The state is in memory: after a restart of the operator the waits start
// again, which takes time but loses no paths.
type wait struct {
	gateway string
	since   time.Time
	alone   map[gateway.Use]time.Time
}

// updated updates the state to the hosts that have only one path now.
func (w wait) updated(next string, stranded map[string][]gateway.Use, now time.Time) wait {
	updated := wait{next, now, map[gateway.Use]time.Time{}}
	if w.gateway == next {
		updated.since = w.since
	}
	for _, uses := range stranded {
		for _, of := range uses {
			since, before := w.alone[of]
			if !before {
				since = now
			}
			updated.alone[of] = since
		}
	}
	return updated
}

// until returns when the last of these has had its time. A host that appears during the wait does not extend it, because the wait
// might never end.
func (w wait) until(uses []gateway.Use) time.Time {
	var last time.Time
	for _, of := range uses {
		if since := w.alone[of]; since.After(last) {
			last = since
		}
	}
	if last.After(w.since) {
		last = w.since
	}
	return last.Add(gateway.Patience)
}

// expired returns the hosts that have had their time. The time of the others starts again after a gateway was away, because they
// may have lost a path to it.
func (w wait) expired(now time.Time) wait {
	had := wait{alone: map[gateway.Use]time.Time{}}
	for of, since := range w.alone {
		if now.Sub(since) >= gateway.Patience {
			had.alone[of] = since
		}
	}
	return had
}

// endWait removes and returns the state of a pool's wait. If the rollout continues, the caller stores it again, or its result of
// over.
func (p *pools) endWait(r *v1alpha1.GatewayPool) wait {
	before, _ := p.waits.LoadAndDelete(r.UID)
	w, _ := before.(wait)
	return w
}

func (p *pools) keepWait(r *v1alpha1.GatewayPool, w wait) { p.waits.Store(r.UID, w) }

// stranded returns, by gateway, the hosts whose only path is through that gateway. A gateway that does not serve has none: its
// sessions have ended, regardless of the register.
func (p *pools) stranded(ctx context.Context, r *v1alpha1.GatewayPool, gateways []v1alpha1.Gateway) (map[string][]gateway.Use, error) {
	if r.Spec.Rollout.IgnoreRedundancy {
		return nil, nil
	}
	targets, err := gateway.ExportedBy(ctx, p.targets, r.Name)
	if err != nil {
		return nil, err
	}
	sessions, err := gateway.Sessions(ctx, p.sessions)
	if err != nil {
		return nil, err
	}
	alone := gateway.Stranded(gateways, targets, sessions)
	for i := range gateways {
		switch gateways[i].Status.Health {
		case "", "New", "Drained", "Dead":
			delete(alone, gateways[i].Name)
		}
	}
	return alone, nil
}

// waitOrTake takes a step once it no longer has to wait for hosts whose only path is through its gateway.
func (p *pools) waitOrTake(ctx context.Context, r *v1alpha1.GatewayPool, next *step, before wait, stranded map[string][]gateway.Use,
) error {
	now := time.Now()
	w := before.updated(next.gateway.Name, stranded, now)
	p.keepWait(r, w) // also if the step fails: an expired time stays expired
	alone := stranded[next.gateway.Name]
	if until := w.until(alone); len(alone) > 0 && now.Before(until) {
		p.progress(r, "WaitsForHosts", fmt.Sprintf("%s waits, until %s at most, for hosts that have no path by another gateway "+
			"yet: %s. (rollout.ignoreRedundancy goes on at once)", next.why, until.UTC().Format(time.RFC3339), list(alone)))
		return &mirror.RequeueAfter{Wait: hostsPollInterval}
	}
	message := next.why
	if len(alone) > 0 {
		message += ": hosts are not waited for any longer that have no path by another gateway: " + list(alone)
	}
	p.progress(r, "InProgress", message)
	if err := next.take(ctx); err != nil {
		return err
	}
	p.keepWait(r, w.expired(now))
	if len(alone) > 0 {
		mirror.Tell(p.recorder, r, corev1.EventTypeWarning, "HostsLosePath", message)
	}
	return nil
}

// list names hosts, as many as fit into a message.
func list(uses []gateway.Use) string {
	var lines []string
	for _, of := range uses {
		lines = append(lines, of.String())
	}
	slices.Sort(lines)
	text := strings.Join(lines[:min(named, len(lines))], ", ")
	if more := len(lines) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
