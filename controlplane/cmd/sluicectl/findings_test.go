package main

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestFindingsArePrintedWithSeverityObjectsCauseRemedyAndConsequences(t *testing.T) {
	host := func(name string) *pb.ObjectReference { return &pb.ObjectReference{Kind: "Host", Name: name} }
	volume := &pb.ObjectReference{Kind: "Volume", Name: "orders"}
	var out strings.Builder
	writeFindings(&out, "  ", []*pb.Finding{
		{Id: "GatewayDead", Severity: pb.FindingSeverity_FINDING_SEVERITY_CRITICAL, Object: &pb.ObjectReference{Kind: "Gateway", Name: "gw-1"},
			Cause: "is dead", Remedy: "restart it", Link: "docs/RUNBOOK.md#gatewaydead", ObjectCount: 1, ConsequenceCount: 9,
			Consequences: []*pb.Consequence{{Object: volume, Cause: "has no owner"}}},
		{Id: "HostUnauthenticated", Severity: pb.FindingSeverity_FINDING_SEVERITY_ADVICE, Object: host("a"), Cause: "may log in",
			Objects: []*pb.ObjectReference{host("a"), host("b"), host("c"), host("d"), host("e"), host("f")}, ObjectCount: 343},
		{Id: "OneReplica", Object: &pb.ObjectReference{Kind: "ControlPlane"}, Cause: "is one replica"},
	})
	for _, line := range []string{
		"  critical GatewayDead: gateway gw-1: is dead\n",
		"      remedy: restart it; docs/RUNBOOK.md#gatewaydead\n",
		"      so volume orders: has no owner\n",
		"      and 4 more consequences\n",
		"  advice HostUnauthenticated: 343 hosts (a, b, c, d, e, …): may log in\n",
		"control plane: is one replica\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not in\n%s", line, out.String())
		}
	}
}

func TestACertificateThatExpiresWithin30DaysIsFound(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for days, cause := range map[int]string{31: "", 29: "expires in 29 days, on 2026-12-20", -1: "has expired on 2026-11-20"} {
		found := expiryFindings("certificate", &x509.Certificate{NotAfter: now.AddDate(0, 0, days)}, now)
		if cause == "" && len(found) > 0 || cause != "" && (len(found) != 1 || found[0].GetCause() != cause) {
			t.Errorf("%d days: %v", days, found)
		}
	}
}

func TestAClockThatDiffersFromThisMachineIsFound(t *testing.T) {
	for ahead, wanted := range map[time.Duration]int{time.Minute: 1, -time.Minute: 1, time.Second: 0} {
		if found := (&globals{insecure: true}).localFindings(&controlPlane{ahead: ahead}, time.Now()); len(found) != wanted {
			t.Errorf("%s ahead: %v", ahead, found)
		}
	}
}

// A volume without an owner keeps its former condition for a moment, and its target has none: the finding decides.
func TestTheColumnReadySaysWhetherAHostCanUseEachObject(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	readyOf := func(kind, name string) string {
		lines := strings.Split(l.must(kind, "list"), "\n")
		column := strings.Index(lines[0], "READY")
		for _, line := range lines[1:] {
			if strings.HasPrefix(line, name+" ") && column > 0 {
				return strings.Fields(line[column:])[0]
			}
		}
		return fmt.Sprintf("not listed: %q", lines)
	}
	for _, kind := range []string{"volume", "target", "host", "snapshot", "pool", "gateway", "gatewaypool", "fabric"} {
		if header := strings.Fields(strings.SplitN(l.must(kind, "list"), "\n", 2)[0]); header[1] != "READY" {
			t.Errorf("%s list: %v", kind, header)
		}
	}
	ready := func(conditions *[]model.Condition) {
		model.SetCondition(conditions, model.Condition{Type: model.ConditionReady, Status: model.ConditionTrue, Reason: "Ready"}, time.Now())
	}
	modify(l, "orders", func(v *model.Volume) { ready(&v.Status.Conditions) })
	if got := readyOf("volume", "orders"); got != "True" {
		t.Errorf("a volume with an owner: %s", got)
	}
	modify(l, "orders", func(v *model.Volume) {
		v.Status.Ownership, v.Status.CapacityBytes = model.Ownership{State: model.Orphaned, Epoch: 1}, v.Spec.SizeBytes
	})
	if got := readyOf("volume", "orders"); got != "False" {
		t.Errorf("a volume without an owner: %s", got)
	}
	if got := readyOf("gatewaypool", "default"); got != "False" {
		t.Errorf("a gateway pool whose gateways never connected: %s", got)
	}
	if got := readyOf("host", "web"); got != "True" {
		t.Errorf("a host: %s", got)
	}
}

func TestDoctorShowsAdviceThatStatusLeavesOut(t *testing.T) {
	l := start(t)
	l.prerequisites()
	out, err := l.run("doctor")
	if exitCode(err) != 1 || !holdsAll(out, []string{"advice OneReplica: control plane: is one replica", "advice GatewayNeverConnected"}) {
		t.Errorf("%v\n%s", err, out)
	}
	if out := l.must("status"); !strings.Contains(out, "Findings: none") {
		t.Errorf("%s", out)
	}
}
