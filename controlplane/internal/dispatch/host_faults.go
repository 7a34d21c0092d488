package dispatch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Reasons of events about what hosts met at a gateway.
const (
	ReasonLoginRefused         = "LoginRefused"
	ReasonAuthenticationFailed = "AuthenticationFailed"
	ReasonPingLost             = "PingLost"
	ReasonDigestError          = "DigestError"
)

// Bounds of records and events about faults of hosts: an attacker controls their number, and must not fill the store or displace other
// events.
const (
	// maxReportedFaults bounds the faults of one report that are read.
	maxReportedFaults = 16
	// faultStoreEvery is the minimum time between two records of one gateway. A correct gateway reports every 10 s.
	faultStoreEvery = 5 * time.Second
	// faultEventBurst bounds the events of one gateway at a time. Further ones follow at intervals of faultEventEvery.
	faultEventBurst = 8
	faultEventEvery = time.Minute
	// sameFault is the time within which equal faults cause no second event.
	sameFault = 10 * time.Minute
	// rememberedFaults bounds the faults that are remembered for that, for each gateway.
	rememberedFaults = 256
	// maxAddress is the limit of an IPv6 address with a zone, maxFaultReason that of HostFault.reason, in bytes.
	maxAddress     = 64
	maxFaultReason = 256
)

// Events records events for users. Record must not block for long.
type Events interface {
	Record(ctx context.Context, about model.Object, warning bool, reason, message string)
}

// hostFaultLog has what hosts met at each gateway, and limits the events about it. It outlives a gateway's streams, so a reconnection
// does not allow further events.
type hostFaultLog struct {
	mutex    sync.Mutex
	gateways map[string]*gatewayFaults
}

type gatewayFaults struct {
	// report has the present faults; nil before the record of the store was read.
	report *model.HostFaultReport
	// stored is the time at which the report was stored last.
	stored time.Time
	// events is the number of events that are possible at the time filled. recorded has the time of the last event, by fault.
	events   float64
	filled   time.Time
	recorded map[string]time.Time
}

func newHostFaultLog() hostFaultLog { return hostFaultLog{gateways: map[string]*gatewayFaults{}} }

// of returns the entry of a gateway. The caller holds the mutex.
func (l *hostFaultLog) of(gateway string, now time.Time) *gatewayFaults {
	if l.gateways[gateway] == nil {
		l.gateways[gateway] = &gatewayFaults{events: faultEventBurst, filled: now, recorded: map[string]time.Time{}}
	}
	return l.gateways[gateway]
}

// allowEvent reports whether a fault becomes an event, and counts it.
func (l *hostFaultLog) allowEvent(gateway, fault string, now time.Time) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.of(gateway, now)
	if recorded, same := known.recorded[fault]; same && now.Sub(recorded) < sameFault {
		return false
	}
	known.events = min(faultEventBurst, known.events+now.Sub(known.filled).Minutes()/faultEventEvery.Minutes())
	known.filled = now
	if known.events < 1 {
		return false
	}
	known.events--
	if len(known.recorded) >= rememberedFaults {
		clear(known.recorded)
	}
	known.recorded[fault] = now
	return true
}

// merge adds faults to those of a gateway. It returns the report to store; false: it is stored with the next one. `stored` reads the
// record of the store, which another replica may have written; it is called once.
func (l *hostFaultLog) merge(gateway string, faults []model.HostFault, now time.Time, stored func() *model.HostFaultReport,
) (report model.HostFaultReport, store bool) {
	l.mutex.Lock()
	known := l.of(gateway, now).report
	l.mutex.Unlock()
	if known == nil {
		known = stored() // without the mutex: the store may hang
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry := l.of(gateway, now)
	if entry.report == nil {
		entry.report = known
	}
	entry.report.Merge(faults, now)
	if now.Sub(entry.stored) < faultStoreEvery {
		return model.HostFaultReport{}, false
	}
	entry.stored = now
	return *entry.report, true
}

// connected makes the next merge read the record of the store: until now another replica may have had the gateway's stream.
func (l *hostFaultLog) connected(gateway string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if known := l.gateways[gateway]; known != nil {
		known.report = nil
	}
}

// faultKinds are the kinds of the protocol, with the reasons of their events.
var faultKinds = map[pb.HostFaultKind]struct {
	kind   model.HostFaultKind
	reason string
}{
	pb.HostFaultKind_HOST_FAULT_KIND_LOGIN_REFUSED:         {model.HostLoginRefused, ReasonLoginRefused},
	pb.HostFaultKind_HOST_FAULT_KIND_AUTHENTICATION_FAILED: {model.HostAuthenticationFailed, ReasonAuthenticationFailed},
	pb.HostFaultKind_HOST_FAULT_KIND_PING_LOST:             {model.HostPingLost, ReasonPingLost},
	pb.HostFaultKind_HOST_FAULT_KIND_DIGEST_ERROR:          {model.HostDigestError, ReasonDigestError},
}

// faultsOfLogins converts the report of a gateway of an earlier version.
func faultsOfLogins(report *pb.LoginFailuresObserved) *pb.HostFaultsObserved {
	faults := &pb.HostFaultsObserved{Others: report.GetOthers()}
	for _, failure := range report.GetFailures()[:min(len(report.GetFailures()), maxReportedFaults)] {
		faults.Faults = append(faults.Faults, &pb.HostFault{Kind: pb.HostFaultKind_HOST_FAULT_KIND_AUTHENTICATION_FAILED,
			Initiator: failure.GetInitiator(), Address: failure.GetAddress(), Count: failure.GetCount()})
	}
	return faults
}

// hostFaults stores a gateway's report, and records events of it: about the host that has the initiator, otherwise about the gateway.
func (g *gatewayStream) hostFaults(ctx context.Context, observed *pb.HostFaultsObserved) error {
	now := time.Now().UTC()
	var faults []model.HostFault
	for _, reported := range observed.GetFaults()[:min(len(observed.GetFaults()), maxReportedFaults)] {
		kind, known := faultKinds[reported.GetKind()]
		if !known {
			continue // a newer gateway
		}
		fault := model.HostFault{Kind: kind.kind, Initiator: model.Sanitized(reported.GetInitiator(), model.MaxInitiatorName),
			Address: model.Sanitized(reported.GetAddress(), maxAddress), TargetIQN: model.Sanitized(reported.GetTargetIqn(), model.MaxInitiatorName),
			Reason: model.Sanitized(reported.GetReason(), maxFaultReason), Count: reported.GetCount()}
		faults = append(faults, fault)
		g.faultEvent(ctx, fault, kind.reason, now)
	}
	if others := observed.GetOthers(); others > 0 {
		g.recordFault(ctx, "others", "", ReasonLoginRefused, now, func(bool) string {
			return fmt.Sprintf("%d further faults of hosts, such as refused logins; the log of the gateway names each", others)
		})
	}
	if len(faults) == 0 {
		return nil
	}
	report, due := g.service.hostFaultLog.merge(g.name, faults, now, func() *model.HostFaultReport {
		stored, err := g.service.options.Store.HostFaults(ctx, g.number)
		if err != nil {
			return &model.HostFaultReport{}
		}
		return stored
	})
	if !due {
		return nil
	}
	return g.connection.ObserveHostFaults(ctx, report)
}

func (g *gatewayStream) faultEvent(ctx context.Context, fault model.HostFault, reason string, now time.Time) {
	key := strings.Join([]string{string(fault.Kind), fault.Initiator, fault.Address, fault.TargetIQN}, " ")
	g.recordFault(ctx, key, fault.Initiator, reason, now, func(known bool) string { return faultMessage(g.name, fault, known) })
}

// recordFault records an event, if the limits allow it. The argument of message is whether a host has the initiator.
func (g *gatewayStream) recordFault(ctx context.Context, key, initiator, reason string, now time.Time, message func(known bool) string) {
	events := g.service.options.Events
	if events == nil || !g.service.hostFaultLog.allowEvent(g.name, key, now) {
		return
	}
	var about model.Object
	known := false
	g.service.options.View.Read(func(o *objects.Objects) {
		if gateway := o.Gateways[g.name]; gateway != nil {
			about = gateway
		}
		if host := o.HostByInitiator(initiator); host != nil {
			about, known = host, true
		}
	})
	if about != nil {
		events.Record(ctx, about, true, reason, message(known))
	}
}

// faultMessage says what happened, and the remedy. `known`: a host has the initiator.
func faultMessage(gateway string, f model.HostFault, known bool) string {
	who := "a peer that gave no initiator name"
	if f.Initiator != "" {
		who = "initiator " + f.Initiator
	}
	who += " from " + f.Address
	if f.TargetIQN != "" {
		who += ", target " + f.TargetIQN
	}
	remedy := ""
	switch {
	case f.Initiator != "" && !known:
		remedy = "; no host has this initiator: add it to a host, or find out which program logs in from that address"
	case f.Kind == model.HostAuthenticationFailed:
		remedy = "; the CHAP name or secret is wrong, or the host has no target at this gateway: compare the credentials of both sides"
	}
	what := map[model.HostFaultKind]string{
		model.HostLoginRefused: "login(s) refused", model.HostAuthenticationFailed: "login(s) failed to authenticate",
		model.HostPingLost: "ping(s) not answered", model.HostDigestError: "PDU(s) with a wrong digest",
	}[f.Kind]
	message := fmt.Sprintf("gateway %s: %d %s: %s", gateway, f.Count, what, who)
	if f.Reason != "" {
		message += ": " + f.Reason
	}
	return message + remedy
}

// clip bounds a text that a gateway sends.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "?")
}
