package dispatch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// recordedEvents are events as `Kind name Reason: message`.
type recordedEvents chan string

// Record implements Events.
func (e recordedEvents) Record(_ context.Context, about model.Object, warning bool, reason, message string) {
	e <- fmt.Sprintf("%s %s %s %v: %s", about.Kind(), about.Metadata().Name, reason, warning, message)
}

func failures(others uint64, all ...*pb.LoginFailure) *pb.ConnectRequest {
	return &pb.ConnectRequest{Message: &pb.ConnectRequest_LoginFailuresObserved{
		LoginFailuresObserved: &pb.LoginFailuresObserved{Failures: all, Others: others}}}
}

func TestFailedLoginsBecomeEventsOfTheHostOrOfTheGateway(t *testing.T) {
	r := start(t)
	const known = "iqn.2026-11.org.example:web"
	create(r, r.Hosts, &model.Host{Meta: model.Meta{Name: "web"},
		Spec: model.HostSpec{Initiators: []string{known}, AllowUnauthenticated: true}})
	g := r.connect(hello("first"))
	g.next(func(m *pb.ConnectResponse) bool { return m.GetUpdate() != nil })
	stranger := strings.Repeat("x", 300)
	for range 2 { // the second report makes no further events
		g.send(failures(7, &pb.LoginFailure{Initiator: known, Address: "192.0.2.7", Count: 3},
			&pb.LoginFailure{Initiator: stranger, Address: "192.0.2.8", Count: 1}))
	}
	for _, wanted := range []string{
		"Host web AuthenticationFailed true: gateway gw-1: 3 login(s) of initiator " + known + " from 192.0.2.7 failed: the CHAP name or secret",
		"Gateway gw-1 AuthenticationFailed true: gateway gw-1: 1 login(s) of initiator " + stranger[:223] + " from 192.0.2.8 failed: no host",
		"Gateway gw-1 AuthenticationFailed true: 7 login(s) of further initiators",
	} {
		if event := <-r.events; !strings.HasPrefix(event, wanted) {
			t.Errorf("event: %s\nwanted: %s", event, wanted)
		}
	}
	g.send(failures(0, &pb.LoginFailure{Initiator: "iqn.2026-11.org.example:last", Address: "192.0.2.9", Count: 1}))
	if event := <-r.events; !strings.Contains(event, ":last from") {
		t.Errorf("a repetition made an event: %s", event)
	}
}

func TestAnAttackMakesFewEvents(t *testing.T) {
	l := failureLog{gateways: map[string]*failureBudget{}}
	now := time.Now()
	made := 0
	for second := range 3600 {
		for i := range maxReportedFailures {
			if l.allow("gw-1", fmt.Sprint(second, i), now.Add(time.Duration(second)*time.Second)) {
				made++
			}
		}
	}
	if made < 60 || made > failureEventBurst+60 {
		t.Errorf("%d events in an hour", made)
	}
	if len(l.gateways["gw-1"].reported) > rememberedFailures {
		t.Errorf("%d failures remembered", len(l.gateways["gw-1"].reported))
	}
	if !l.allow("gw-2", "a", now) {
		t.Error("another gateway's events are gone")
	}
}
