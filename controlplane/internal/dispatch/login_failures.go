package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// ReasonAuthenticationFailed is the reason of events about logins that fail to authenticate.
const ReasonAuthenticationFailed = "AuthenticationFailed"

// Bounds of events about failed logins: an attacker controls the number of failures, and must not displace other events.
const (
	// maxReportedFailures bounds the failures of one report that are read.
	maxReportedFailures = 16
	// failureEventBurst bounds the events of one gateway at a time. Further ones follow at intervals of failureEventEvery.
	failureEventBurst = 8
	failureEventEvery = time.Minute
	// sameFailure is the time within which the same initiator and address cause no second event.
	sameFailure = 10 * time.Minute
	// rememberedFailures bounds the failures that are remembered for that, for each gateway.
	rememberedFailures = 256
	// maxInitiatorName is the limit of iSCSI names (RFC 7143 §4.2.7.1), maxAddress that of an IPv6 address with a zone.
	maxInitiatorName = 223
	maxAddress       = 64
)

// Events records events for users. Record must not block for long.
type Events interface {
	Record(ctx context.Context, about model.Object, warning bool, reason, message string)
}

// failureLog limits the events about failed logins. It outlives a gateway's streams, so a reconnection does not allow further
// events.
type failureLog struct {
	mutex    sync.Mutex
	gateways map[string]*failureBudget
}

type failureBudget struct {
	events   float64
	filled   time.Time
	reported map[string]time.Time
}

// allow reports whether a failure becomes an event, and counts it.
func (l *failureLog) allow(gateway, failure string, now time.Time) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	budget := l.gateways[gateway]
	if budget == nil {
		budget = &failureBudget{events: failureEventBurst, filled: now, reported: map[string]time.Time{}}
		l.gateways[gateway] = budget
	}
	if reported, known := budget.reported[failure]; known && now.Sub(reported) < sameFailure {
		return false
	}
	budget.events = min(failureEventBurst, budget.events+now.Sub(budget.filled).Minutes()/failureEventEvery.Minutes())
	budget.filled = now
	if budget.events < 1 {
		return false
	}
	budget.events--
	if len(budget.reported) >= rememberedFailures {
		clear(budget.reported)
	}
	budget.reported[failure] = now
	return true
}

// loginsFailed records events for a gateway's report: about the host that has the initiator, otherwise about the gateway.
func (g *gatewayStream) loginsFailed(ctx context.Context, report *pb.LoginFailuresObserved) {
	events := g.service.options.Events
	if events == nil {
		return
	}
	for _, failure := range report.GetFailures()[:min(len(report.GetFailures()), maxReportedFailures)] {
		initiator, address := clip(failure.GetInitiator(), maxInitiatorName), clip(failure.GetAddress(), maxAddress)
		if !g.service.failures.allow(g.name, initiator+" "+address, time.Now()) {
			continue
		}
		about, why := g.aboutFailure(initiator)
		if about == nil {
			return
		}
		events.Record(ctx, about, true, ReasonAuthenticationFailed, fmt.Sprintf("gateway %s: %d login(s) of initiator %s from %s failed: %s",
			g.name, failure.GetCount(), initiator, address, why))
	}
	if others := report.GetOthers(); others > 0 && g.service.failures.allow(g.name, "others", time.Now()) {
		if about, _ := g.aboutFailure(""); about != nil {
			events.Record(ctx, about, true, ReasonAuthenticationFailed,
				fmt.Sprintf("%d login(s) of further initiators or addresses failed to authenticate; the log of the gateway names each", others))
		}
	}
}

// aboutFailure returns the object of an event about an initiator, and the cause with its remedy.
func (g *gatewayStream) aboutFailure(initiator string) (about model.Object, why string) {
	g.service.options.View.Read(func(o *objects.Objects) {
		if gateway := o.Gateways[g.name]; gateway != nil {
			about = gateway
			why = "no host has this initiator; add it to a host, or find out which program logs in from that address"
		}
		for _, host := range o.Hosts {
			if initiator != "" && slices.Contains(host.Spec.Initiators, initiator) {
				about = host
				why = "the CHAP name or secret is wrong, or the host has no target at this gateway; compare the credentials of both sides"
			}
		}
	})
	return about, why
}

// clip bounds a text that a gateway sends.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "?")
}
