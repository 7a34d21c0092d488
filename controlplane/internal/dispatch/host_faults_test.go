package dispatch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// recordedEvents are events as `Kind name Reason: message`.
type recordedEvents chan string

// Record implements Events.
func (e recordedEvents) Record(_ context.Context, about model.Object, warning bool, reason, message string) {
	e <- fmt.Sprintf("%s %s %s %v: %s", about.Kind(), about.Metadata().Name, reason, warning, message)
}

func loginFailures(others uint64, all ...*pb.LoginFailure) *pb.ConnectRequest {
	return &pb.ConnectRequest{Message: &pb.ConnectRequest_LoginFailuresObserved{
		LoginFailuresObserved: &pb.LoginFailuresObserved{Failures: all, Others: others}}}
}

func hostFaults(others uint64, all ...*pb.HostFault) *pb.ConnectRequest {
	return &pb.ConnectRequest{Message: &pb.ConnectRequest_HostFaultsObserved{
		HostFaultsObserved: &pb.HostFaultsObserved{Faults: all, Others: others}}}
}

func refusedLogin(initiator string) *pb.HostFault {
	return &pb.HostFault{Kind: pb.HostFaultKind_HOST_FAULT_KIND_LOGIN_REFUSED, Initiator: initiator, Address: "192.0.2.7",
		TargetIqn: "iqn.2026-11.org.example:t", Reason: "status 0203: there is no such target", Count: 2}
}

func TestFaultsOfHostsBecomeEventsOfTheHostOrOfTheGateway(t *testing.T) {
	r := start(t)
	const known = "iqn.2026-11.org.example:web"
	create(r, r.Hosts, &model.Host{Meta: model.Meta{Name: "web"},
		Spec: model.HostSpec{Initiators: []string{known}, AllowUnauthenticated: true}})
	g := r.connect(hello("first"))
	g.next(func(m *pb.ConnectResponse) bool { return m.GetUpdate() != nil })
	lost, damaged := refusedLogin(known), refusedLogin(known)
	lost.Kind, lost.Reason = pb.HostFaultKind_HOST_FAULT_KIND_PING_LOST, "no answer"
	damaged.Kind, damaged.Reason = pb.HostFaultKind_HOST_FAULT_KIND_DIGEST_ERROR, "wrong data digest"
	stranger := strings.Repeat("x", 300)
	for range 2 { // the second report makes no further events
		g.send(hostFaults(7, refusedLogin(known), lost, damaged, refusedLogin(stranger), refusedLogin("bad\nname\x1b")))
	}
	const from = " from 192.0.2.7, target iqn.2026-11.org.example:t: "
	for _, wanted := range []string{
		"Host web LoginRefused true: gateway gw-1: 2 login(s) refused: initiator " + known + from + "status 0203: there is no such target",
		"Host web PingLost true: gateway gw-1: 2 ping(s) not answered: initiator " + known + from + "no answer",
		"Host web DigestError true: gateway gw-1: 2 PDU(s) with a wrong digest: initiator " + known + from + "wrong data digest",
		"Gateway gw-1 LoginRefused true: gateway gw-1: 2 login(s) refused: initiator " + stranger[:223] + from +
			"status 0203: there is no such target; no host has this initiator",
		"Gateway gw-1 LoginRefused true: gateway gw-1: 2 login(s) refused: initiator bad?name? from",
		"Gateway gw-1 LoginRefused true: 7 further faults of hosts",
	} {
		if event := <-r.events; !strings.HasPrefix(event, wanted) {
			t.Errorf("event: %s\nwanted: %s", event, wanted)
		}
	}
	g.send(hostFaults(0, refusedLogin("iqn.2026-11.org.example:last")))
	if event := <-r.events; !strings.Contains(event, ":last from") {
		t.Errorf("a repetition made an event: %s", event)
	}
}

// A gateway of the release before sends LoginFailuresObserved.
func TestFailedLoginsOfAnOlderGatewayAreFaultsOfHosts(t *testing.T) {
	r := start(t)
	g := r.connect(hello("first"))
	g.next(func(m *pb.ConnectResponse) bool { return m.GetUpdate() != nil })
	g.send(loginFailures(0, &pb.LoginFailure{Initiator: "iqn.2026-11.org.example:a", Address: "192.0.2.8", Count: 3}))
	if event := <-r.events; !strings.HasPrefix(event, "Gateway gw-1 AuthenticationFailed true: gateway gw-1: 3 login(s) failed to authenticate: "+
		"initiator iqn.2026-11.org.example:a from 192.0.2.8; no host") {
		t.Error(event)
	}
	if f := storedFault(r, "iqn.2026-11.org.example:a"); f.Kind != model.HostAuthenticationFailed || f.Count != 3 || f.Last.IsZero() {
		t.Errorf("%+v", f)
	}
}

// storedFault waits until a fault of that initiator is stored.
func storedFault(r *replica, initiator string) model.HostFault {
	r.t.Helper()
	var found model.HostFault
	enough := fmt.Errorf("found")
	err := r.WatchHostFaults(r.t.Context(), 0, func(c store.RecordChange[*model.HostFaultReport]) error {
		if c.Type != store.Put {
			return nil
		}
		for _, fault := range c.Record.Faults {
			if fault.Initiator == initiator {
				found = fault
				return enough
			}
		}
		return nil
	})
	if err != enough { //nolint:errorlint // the same value
		r.t.Fatal(err)
	}
	return found
}

func TestAFaultThatContinuesKeepsItsStartWhenAnotherReplicaHasTheStream(t *testing.T) {
	began := time.Now().Add(-20 * time.Second)
	stored := &model.HostFaultReport{Faults: []model.HostFault{{Initiator: "a", First: began, Last: began.Add(10 * time.Second), Count: 4}}}
	l := newHostFaultLog()
	now := time.Now()
	report, due := l.merge("gw-1", []model.HostFault{{Initiator: "a", Count: 1}}, now, func() *model.HostFaultReport { return stored })
	if !due || len(report.Faults) != 1 || !report.Faults[0].First.Equal(began) || report.Faults[0].Count != 5 {
		t.Errorf("%v %+v", due, report)
	}
	never := func() *model.HostFaultReport { t.Error("the store is read again"); return stored }
	if _, due = l.merge("gw-1", []model.HostFault{{Initiator: "b"}}, now.Add(faultStoreEvery-1), never); due {
		t.Error("a gateway that reports too often writes each report to the store")
	}
	report, due = l.merge("gw-1", nil, now.Add(faultStoreEvery), never)
	if !due || len(report.Faults) != 2 {
		t.Errorf("a report was lost: %v %+v", due, report)
	}
}

func TestAnAttackMakesFewEvents(t *testing.T) {
	l := newHostFaultLog()
	now := time.Now()
	made := 0
	for second := range 3600 {
		for i := range maxReportedFaults {
			if l.allowEvent("gw-1", fmt.Sprint(second, i), now.Add(time.Duration(second)*time.Second)) {
				made++
			}
		}
	}
	if made < 60 || made > faultEventBurst+60 {
		t.Errorf("%d events in an hour", made)
	}
	if len(l.gateways["gw-1"].recorded) > rememberedFaults {
		t.Errorf("%d faults remembered", len(l.gateways["gw-1"].recorded))
	}
	if !l.allowEvent("gw-2", "a", now) {
		t.Error("another gateway's events are gone")
	}
}
