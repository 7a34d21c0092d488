package findings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	webInitiator = "iqn.2026-11.org.example:web"
	shopIQN      = "iqn.2026-11.dev.sluice:shop"
)

// met adds what an initiator met at gateway 1.
func (s *system) met(kind model.HostFaultKind, initiator, reason string) {
	s.facts.HostFaults = append(s.facts.HostFaults, &model.HostFaultReport{Gateway: model.GatewayRef{Number: 1}, Faults: []model.HostFault{{Kind: kind,
		Initiator: initiator, Address: "192.0.2.7", TargetIQN: shopIQN, Reason: reason, Count: 1, First: now.Add(-time.Minute), Last: now}}})
}

// session adds a session of host web at a portal.
func (s *system) session(gateway, tag uint32) {
	s.facts.Sessions = append(s.facts.Sessions, &model.Session{GatewayNumber: gateway, TSIH: uint32(len(s.facts.Sessions) + 1), TargetIQN: shopIQN,
		Initiator: webInitiator, PortalGroupTag: tag})
}

func TestAFaultOfAHostEnds30SecondsAfterItsLastReport(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 1, 30*time.Second - 1: 1, 30 * time.Second: 0} {
		s := healthy()
		s.met(model.HostLoginRefused, webInitiator, "status 0203: none")
		s.facts.Time = now.Add(after)
		items := s.items()
		if len(items) != want {
			t.Errorf("after %s: %+v", after, items)
		}
		if want == 1 && !items[0].Since.Equal(now.Add(-time.Minute)) {
			t.Errorf("it began at %s", items[0].Since)
		}
	}
}

// The repair is a session: no report says that a fault has ended.
func TestAFaultOfAHostEndsWithASessionFromThatAddressAfterwards(t *testing.T) {
	type change func(*model.Session)
	for name, c := range map[string]struct {
		kind   model.HostFaultKind
		change change
		ends   bool
	}{
		"a login after the refused one": {model.HostLoginRefused, func(*model.Session) {}, true},
		"a login after a lost ping":     {model.HostPingLost, func(*model.Session) {}, true},
		"a login before the fault": {model.HostLoginRefused, func(s *model.Session) {
			s.LoginTime = now.Add(-model.HostFaultReportedEvery)
		}, false},
		"another address":      {model.HostPingLost, func(s *model.Session) { s.InitiatorAddress = "192.0.2.8:4000" }, false},
		"another initiator":    {model.HostLoginRefused, func(s *model.Session) { s.Initiator += "2" }, false},
		"another target":       {model.HostLoginRefused, func(s *model.Session) { s.TargetIQN += "2" }, false},
		"another gateway":      {model.HostLoginRefused, func(s *model.Session) { s.GatewayNumber = 2 }, false},
		"digests of a session": {model.HostDigestError, func(*model.Session) {}, false},
	} {
		s := healthy()
		s.session(1, 11)
		s.session(2, 21)
		session := s.facts.Sessions[0]
		session.InitiatorAddress, session.LoginTime = "192.0.2.7:4000", now
		c.change(session)
		s.met(c.kind, webInitiator, "x")
		ended := true
		for _, item := range s.items() {
			ended = ended && !strings.HasPrefix(item.Rule.ID, "HostLogin") && !strings.HasPrefix(item.Rule.ID, "HostPings") && !strings.HasPrefix(item.Rule.ID, "HostDigest")
		}
		if ended != c.ends {
			t.Errorf("%s: %+v", name, s.items())
		}
	}
}

func TestAFaultOfAnUnknownInitiatorIsAdviceAndThatOfAnUnknownGatewayNone(t *testing.T) {
	s := healthy()
	s.met(model.HostLoginRefused, "iqn.2026-11.org.example:stranger", "status 0203: none")
	s.facts.HostFaults = append(s.facts.HostFaults, &model.HostFaultReport{Gateway: model.GatewayRef{Number: 9},
		Faults: []model.HostFault{{Kind: model.HostPingLost, Initiator: webInitiator, Last: now}}})
	items := s.items()
	if len(items) != 1 || items[0].Severity != findings.Advice || !strings.HasPrefix(items[0].Remedy, "add the initiator to a host") {
		t.Errorf("%+v", items)
	}
	s.host().Spec.Initiators = append(s.host().Spec.Initiators, "iqn.2026-11.org.example:stranger")
	if items = s.items(); len(items) != 1 || items[0].Severity != findings.Warning || items[0].Ref.Name != "web" {
		t.Errorf("%+v", items)
	}
}

func TestARefusalHasTheRemedyOfItsStatus(t *testing.T) {
	for reason, want := range map[string]string{"status 0203: none": "spec.hosts", "status 0302: 4 sessions": "spec.maxSessions",
		"status 0200: odd": "settings of the initiator", "closed without an answer: x": "settings of the initiator"} {
		s := healthy()
		s.met(model.HostLoginRefused, webInitiator, reason)
		if items := s.items(); len(items) != 1 || !strings.Contains(items[0].Remedy, want) {
			t.Errorf("%s: %+v", reason, items)
		}
	}
}

func TestAHostWithAllItsPathsOrWithNoneHasNoFinding(t *testing.T) {
	s := healthy()
	if items := s.items(); len(items) != 0 {
		t.Errorf("without sessions: %+v", items)
	}
	s.session(1, 11)
	s.session(2, 21)
	if items := s.items(); len(items) != 0 {
		t.Errorf("with both: %+v", items)
	}
}

func TestAPathOfAGatewayThatDoesNotServeIsNotMissing(t *testing.T) {
	s := healthy()
	s.session(1, 11)
	s.gateway("gw-2").Status.Health = model.GatewayDead
	for _, item := range s.items() {
		if item.Rule.ID == "HostPathMissing" {
			t.Errorf("%+v", item)
		}
	}
}

func TestAMissingPathIsAFindingOnlyAfter30Seconds(t *testing.T) {
	s := healthy()
	s.session(1, 11)
	if items := s.items(); len(items) != 1 || items[0].Settles != 30*time.Second {
		t.Errorf("%+v", items)
	}
}

func TestAHostWithoutSwitchesNeedsOnePortalOfEachGateway(t *testing.T) {
	s := healthy()
	s.host().Spec.Switches = nil
	s.session(1, 11)
	s.session(2, 22)
	if items := s.items(); len(items) != 0 {
		t.Errorf("one portal of each: %+v", items)
	}
	s.facts.Sessions = s.facts.Sessions[:1]
	if items := s.items(); len(items) != 1 || !strings.HasSuffix(items[0].Cause, "none to target shop at gateway gw-2") {
		t.Errorf("one gateway: %+v", items)
	}
}

// A target whose gateways have no portal on the host's fabric leaves no choice.
func TestAPortalOnAnotherFabricIsNotWrongIfThereIsNoOtherOne(t *testing.T) {
	s := healthy()
	s.host().Spec.Switches = []string{"red/s1"}
	for _, name := range []string{"gw-1", "gw-2"} {
		s.gateway(name).Spec.Portals = s.gateway(name).Spec.Portals[1:]
	}
	s.session(1, 12)
	s.session(2, 22)
	if items := s.items(); len(items) != 0 {
		t.Errorf("%+v", items)
	}
}

func TestManyMissingPathsOfAHostAreOneFinding(t *testing.T) {
	s := healthy()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		iqn := "iqn.2026-11.dev.sluice:" + name
		s.put(&model.Volume{Meta: model.Meta{Name: name}, Spec: model.VolumeSpec{Pool: "nvme"}, Status: model.VolumeStatus{CapacityBytes: 1 << 30,
			Ownership: model.Ownership{State: model.Owned, Owner: model.GatewayRef{Number: 1}}}},
			&model.Target{Meta: model.Meta{Name: name}, Spec: model.TargetSpec{IQN: iqn, Paths: 2, GatewayPool: "default", Hosts: []string{"web"},
				Luns: []model.TargetLun{{Volume: name}}}, Status: model.TargetStatus{PathSet: []uint32{1, 2}}})
		s.facts.Sessions = append(s.facts.Sessions, &model.Session{GatewayNumber: 2, TSIH: 7, TargetIQN: iqn, Initiator: webInitiator, PortalGroupTag: 21})
	}
	items := s.items()
	if len(items) != 1 || !strings.HasSuffix(items[0].Cause, "none to target a at gateway gw-1, fabric red; target b at gateway gw-1, fabric red; "+
		"target c at gateway gw-1, fabric red; and others") {
		t.Errorf("%+v", items)
	}
}

func TestASystemOf1000TargetsWhoseHostsHaveAllPathsHasNoFinding(t *testing.T) {
	s := healthy()
	for i := range 1000 {
		name := fmt.Sprint("v-", i)
		iqn := "iqn.2026-11.dev.sluice:" + name
		s.put(&model.Volume{Meta: model.Meta{Name: name}, Spec: model.VolumeSpec{Pool: "nvme"}, Status: model.VolumeStatus{CapacityBytes: 1 << 30,
			Ownership: model.Ownership{State: model.Owned, Owner: model.GatewayRef{Number: 1}}}},
			&model.Target{Meta: model.Meta{Name: name}, Spec: model.TargetSpec{IQN: iqn, Paths: 2, GatewayPool: "default", Hosts: []string{"web"},
				Luns: []model.TargetLun{{Volume: name}}}, Status: model.TargetStatus{PathSet: []uint32{1, 2}}})
		for gateway := range uint32(2) {
			s.facts.Sessions = append(s.facts.Sessions, &model.Session{GatewayNumber: gateway + 1, TargetIQN: iqn, Initiator: webInitiator,
				PortalGroupTag: 10*gateway + 11})
		}
	}
	if items := s.items(); len(items) > 0 {
		t.Errorf("%d findings, such as %+v", len(items), items[0])
	}
}
