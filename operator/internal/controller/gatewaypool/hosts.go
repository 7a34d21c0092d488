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

// lookForHosts is how often sessions are looked at while hosts are waited for: no watch wakes a pool for them.
const lookForHosts = 4 * time.Second

// named is how many hosts a message names.
const named = 5

// wait is what a rollout knows of hosts that have one path only: which gateway waits for them, since when, and since when each is seen
// so, by whichever gateway, while all serve. Who had the time that there is, has one path because it wants it so or is not well; it
// is not waited for at each gateway anew. All this is kept in memory: after a restart of the operator it begins anew, which takes
// time and no paths.
type wait struct {
	gateway string
	since   time.Time
	alone   map[gateway.Use]time.Time
}

// look brings what is known up to the hosts that have one path only now.
func (w wait) look(next string, stranded map[string][]gateway.Use, now time.Time) wait {
	is := wait{next, now, map[gateway.Use]time.Time{}}
	if w.gateway == next {
		is.since = w.since
	}
	for _, uses := range stranded {
		for _, of := range uses {
			since, before := w.alone[of]
			if !before {
				since = now
			}
			is.alone[of] = since
		}
	}
	return is
}

// until is when the last of these has had its time. Who comes while others are waited for makes it no longer: there might be no end.
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

// over are those that have had their time. It begins anew for others when a gateway was away: they may have lost a path to it.
func (w wait) over(now time.Time) wait {
	had := wait{alone: map[gateway.Use]time.Time{}}
	for of, since := range w.alone {
		if now.Sub(since) >= gateway.Patience {
			had.alone[of] = since
		}
	}
	return had
}

// endWait ends what a pool waits with and returns it. Whoever goes on with the rollout keeps it, or what is over of it.
func (p *pools) endWait(r *v1alpha1.GatewayPool) wait {
	before, _ := p.waits.LoadAndDelete(r.UID)
	w, _ := before.(wait)
	return w
}

func (p *pools) keepWait(r *v1alpha1.GatewayPool, w wait) { p.waits.Store(r.UID, w) }

// stranded are the hosts that have no path but by one gateway, by gateway. Of one that does not serve there are none: its sessions
// are over, whatever the register has.
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

// waitOrTake takes a step, once there is no host left to wait for that has no path but by its gateway.
func (p *pools) waitOrTake(ctx context.Context, r *v1alpha1.GatewayPool, next *step, before wait, stranded map[string][]gateway.Use,
) error {
	now := time.Now()
	w := before.look(next.gateway.Name, stranded, now)
	p.keepWait(r, w) // also where the step fails: a time that is over stays over
	alone := stranded[next.gateway.Name]
	if until := w.until(alone); len(alone) > 0 && now.Before(until) {
		p.progress(r, "WaitsForHosts", fmt.Sprintf("%s waits, until %s at most, for hosts that have no path by another gateway "+
			"yet: %s. (rollout.ignoreRedundancy goes on at once)", next.why, until.UTC().Format(time.RFC3339), list(alone)))
		return &mirror.RequeueAfter{Wait: lookForHosts}
	}
	message := next.why
	if len(alone) > 0 {
		message += ": hosts are not waited for any longer that have no path by another gateway: " + list(alone)
	}
	p.progress(r, "InProgress", message)
	if err := next.take(ctx); err != nil {
		return err
	}
	p.keepWait(r, w.over(now))
	if len(alone) > 0 {
		mirror.Tell(p.recorder, r, corev1.EventTypeWarning, "HostsLosePath", message)
	}
	return nil
}

// list names hosts, as many as a message has room for.
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
