package decide_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// healthAt applies the decision on a gateway, and returns its health and its condition Ready.
func healthAt(t *testing.T, v *decide.LeaderView, name string, now time.Time) (model.GatewayHealth, model.Condition) {
	t.Helper()
	g, decision := *v.Gateways[name], v.DecideGateway(name, now)
	for _, a := range decision.Actions {
		modifies(a, &g)
	}
	g.Meta.Version++
	v.Put(&g)
	return g.Status.Health, conditionOf(t, g.Status.Conditions, model.ConditionReady)
}

// sharing has gateways that all are in the path set of a target, so that they are peers.
func sharing(gateways int) *decide.LeaderView {
	v := known(gateways)
	var all []uint32
	for n := range gateways {
		all = append(all, uint32(n+1))
	}
	v.Put(&model.Target{Meta: model.Meta{Name: "t", UID: "t", Version: 1}, Status: model.TargetStatus{PathSet: all}})
	return v
}

func TestAGatewayWithAStreamThatNoPeerReachesIsNotServingUntilOneDoes(t *testing.T) {
	for _, reach := range []model.Reach{model.PeerRefused, model.PeerSilent} {
		v := sharing(3)
		for _, reporter := range []uint32{2, 3} {
			says(v, reporter, 1, reach, time.Minute, term+1, start)
		}
		says(v, 3, 2, model.PeerConnected, 0, term+1, start)
		if health, _ := healthAt(t, v, "gw-1", start); health != model.GatewayReady {
			t.Errorf("%s, at once: %s", reach, health)
		}
		if left := v.DecideGateway("gw-1", start).Wait; left != decide.UnreachedLimit {
			t.Errorf("it is decided on again after %s", left)
		}
		health, ready := healthAt(t, v, "gw-1", start.Add(decide.UnreachedLimit))
		if health != model.GatewayNotServing || ready.Status != model.ConditionFalse || !strings.Contains(ready.Message, "no other gateway reaches") {
			t.Errorf("%s, later: %s, %+v", reach, health, ready)
		}
		says(v, 2, 1, model.PeerConnected, 0, term+2, start)
		if health, _ := healthAt(t, v, "gw-1", start.Add(time.Minute)); health != model.GatewayReady {
			t.Errorf("%s, and it is reached again: %s", reach, health)
		}
	}
}

func TestAGatewayThatOnePeerReachesServes(t *testing.T) {
	v := sharing(3)
	says(v, 2, 1, model.PeerRefused, 0, term+1, start)
	says(v, 3, 1, model.PeerConnected, 0, term+1, start)
	healthAt(t, v, "gw-1", start)
	if health, _ := healthAt(t, v, "gw-1", start.Add(time.Hour)); health != model.GatewayReady {
		t.Errorf("%s", health)
	}
}

// A peer that refuses the login of others cannot be forwarded to, although its process answers.
func TestAGatewayThatRefusesTheLoginOfItsPeersIsNotServing(t *testing.T) {
	v := sharing(3)
	for _, reporter := range []uint32{2, 3} {
		refuses(v, reporter, 1, "authentication failure")
	}
	says(v, 3, 2, model.PeerConnected, 0, term+1, start)
	healthAt(t, v, "gw-1", start)
	health, ready := healthAt(t, v, "gw-1", start.Add(decide.UnreachedLimit))
	if health != model.GatewayNotServing || !strings.Contains(ready.Message, "gateway gw-3 is refused the login: authentication failure") {
		t.Errorf("%s, %+v", health, ready)
	}
}

// It answers, so it is not dead (R1).
func TestAGatewayWithoutAStreamThatRefusesTheLoginOfItsPeersIsNotDead(t *testing.T) {
	v := sharing(3)
	for _, reporter := range []uint32{2, 3} {
		refuses(v, reporter, 1, "authentication failure")
	}
	ends(v, 1, start)
	if health, _ := healthAt(t, v, "gw-1", start.Add(time.Hour)); health != model.GatewayDisconnected {
		t.Errorf("%s", health)
	}
}

func TestAGatewayIsDegradedWhileAPeerCannotForwardToIt(t *testing.T) {
	for _, c := range []struct {
		loses func(*decide.LeaderView)
		want  string
	}{
		{func(v *decide.LeaderView) { says(v, 2, 1, model.PeerSilent, time.Minute, term+1, start) }, "gateway gw-2 receives nothing from it"},
		{func(v *decide.LeaderView) { says(v, 2, 1, model.PeerRefused, 0, term+1, start) }, "gateway gw-2 is refused the connection"},
		{func(v *decide.LeaderView) { refuses(v, 2, 1, "no key") }, "gateway gw-2 is refused the login: no key"},
	} {
		for _, gateways := range []int{2, 3} { // with two gateways, no gateway reaches another one
			v := sharing(gateways)
			c.loses(v)
			if gateways == 3 {
				says(v, 3, 1, model.PeerConnected, 0, term+1, start)
			}
			healthAt(t, v, "gw-1", start)
			if now := conditionOf(t, v.Gateways["gw-1"].Status.Conditions, model.ConditionDegraded); now.Status != model.ConditionFalse {
				t.Errorf("%s, at once: %+v", c.want, now)
			}
			health, _ := healthAt(t, v, "gw-1", start.Add(decide.UnreachedLimit))
			degraded := conditionOf(t, v.Gateways["gw-1"].Status.Conditions, model.ConditionDegraded)
			if health != model.GatewayReady || degraded.Status != model.ConditionTrue || degraded.Reason != model.ReasonPeersLost ||
				degraded.Message != c.want {
				t.Errorf("%d gateways: %s, %+v, want %q", gateways, health, degraded, c.want)
			}
			says(v, 2, 1, model.PeerConnected, 0, term+2, start)
			healthAt(t, v, "gw-1", start.Add(time.Minute))
			if later := conditionOf(t, v.Gateways["gw-1"].Status.Conditions, model.ConditionDegraded); later.Status != model.ConditionFalse {
				t.Errorf("%s, and it is reached again: %+v", c.want, later)
			}
		}
	}
}

// It cannot tell whether the fault is its own.
func TestTheReportOfAGatewayThatIsNotServingDoesNotCount(t *testing.T) {
	v := sharing(2)
	g := *v.Gateways["gw-2"]
	g.Meta.Version, g.Status.Health = 9, model.GatewayNotServing
	v.Put(&g)
	says(v, 2, 1, model.PeerSilent, time.Minute, term+1, start)
	healthAt(t, v, "gw-1", start)
	healthAt(t, v, "gw-1", start.Add(time.Hour))
	if degraded := conditionOf(t, v.Gateways["gw-1"].Status.Conditions, model.ConditionDegraded); degraded.Status != model.ConditionFalse {
		t.Errorf("%+v", degraded)
	}
	ends(v, 1, start)
	if health, _ := healthAt(t, v, "gw-1", start.Add(2*time.Hour)); health != model.GatewayDisconnected {
		t.Errorf("without a stream: %s", health)
	}
}

// A peer that shares no path set with the gateway any more does not look for it.
func TestTheReportOfAFormerPeerDoesNotCount(t *testing.T) {
	v := known(3)
	v.Put(&model.Target{Meta: model.Meta{Name: "t", UID: "t", Version: 1}, Status: model.TargetStatus{PathSet: []uint32{1, 2}}})
	says(v, 2, 1, model.PeerRefused, 0, term+1, start)
	says(v, 3, 1, model.PeerConnected, 0, term+1, start)
	says(v, 1, 2, model.PeerConnected, 0, term+1, start)
	healthAt(t, v, "gw-1", start)
	if health, _ := healthAt(t, v, "gw-1", start.Add(decide.UnreachedLimit)); health != model.GatewayNotServing {
		t.Errorf("%s", health)
	}
}

// If no gateway reaches another one, all would lose their volumes at once.
func TestGatewaysOfWhichNoneReachesAnotherKeepWhatTheyHave(t *testing.T) {
	v := sharing(2)
	says(v, 1, 2, model.PeerSilent, time.Minute, term+1, start)
	says(v, 2, 1, model.PeerSilent, time.Minute, term+1, start)
	for _, name := range []string{"gw-1", "gw-2"} {
		healthAt(t, v, name, start)
		if health, _ := healthAt(t, v, name, start.Add(time.Hour)); health != model.GatewayReady {
			t.Errorf("%s: %s", name, health)
		}
	}
}

func TestAGatewayServesOnlyIfThePortsThatItNeedsAreOpen(t *testing.T) {
	for name, c := range map[string]struct {
		gateways   int
		portals    int
		report     model.AppliedReport
		wantsServe bool
	}{
		"all portals":                      {2, 2, model.AppliedReport{ClosedPortals: 2}, false},
		"one portal of two":                {2, 2, model.AppliedReport{ClosedPortals: 1}, true},
		"the forwarding port":              {2, 1, model.AppliedReport{ClosedForwarding: "in use"}, false},
		"the forwarding port, and no peer": {1, 1, model.AppliedReport{ClosedForwarding: "in use"}, true},
	} {
		v := sharing(c.gateways)
		g := *v.Gateways["gw-1"]
		g.Meta.Version++
		g.Spec.Portals = make([]model.Portal, c.portals)
		v.Put(&g)
		c.report.Kind, c.report.UID, c.report.Gateway, c.report.Refused = model.KindGateway, g.Meta.UID, ref(1), "address in use"
		v.Observe(model.Observed{Version: term + 1, Applied: &c.report}, start)
		healthAt(t, v, "gw-1", start)
		health, ready := healthAt(t, v, "gw-1", start.Add(decide.UnreachedLimit))
		if (health == model.GatewayReady) != c.wantsServe {
			t.Errorf("%s: %s, %s", name, health, ready.Message)
		}
	}
}

func TestNothingMovesToAGatewayThatIsNotServingAndWhatItHasLeavesIt(t *testing.T) {
	owned := model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}
	v := known(2)
	exported(v, owned, true)
	v.Put(&model.Fabric{Meta: model.Meta{Name: "red", UID: "red", Version: 1}})
	for name, portal := range map[string]string{"gw-1": "192.0.2.1:3260", "gw-2": "192.0.2.2:3260"} {
		g := *v.Gateways[name]
		g.Meta.Version, g.Spec.Portals = 9, []model.Portal{{Listen: portal, Advertised: portal, Fabric: "red"}}
		if name == "gw-1" {
			g.Status.Health = model.GatewayNotServing
		}
		v.Put(&g)
	}
	target := *v.Targets["t"]
	target.Meta.Version, target.Spec.GatewayPool = 9, "default"
	v.Put(&target)
	assignment := placement.Plan(v.Cluster())
	if len(assignment.Targets) != 1 || assignment.Targets[0].Serving != 1 {
		t.Fatalf("the planned path set: %+v", assignment.Targets)
	}
	v.TakePlan(assignment)
	if next, _ := next(t, v, start); next.State != model.Moving || next.Next != ref(2) {
		t.Errorf("the volume does not leave: %+v", next)
	}
}

// No other gateway is on the node that has the data.
func TestAVolumeWhoseOwnerIsNotServingAndThatCannotLeaveItIsNotReady(t *testing.T) {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}, false)
	for _, c := range []struct {
		health model.GatewayHealth
		ready  model.ConditionStatus
	}{{model.GatewayReady, model.ConditionTrue}, {model.GatewayNotServing, model.ConditionFalse}} {
		g := *v.Gateways["gw-1"]
		g.Meta.Version++
		g.Status.Health = c.health
		v.Put(&g)
		ready := v.VolumeConditions(v.Volumes["v"], start)[0]
		if ready.Status != c.ready || ready.Status == model.ConditionFalse && ready.Reason != model.ReasonOwnerNotServing {
			t.Errorf("its owner is %s: %+v", c.health, ready)
		}
	}
}

// A gateway without a stream continues to serve (R3), so hosts still reach the target.
func TestATargetIsReadyWhileAGatewayOfItsPathsServes(t *testing.T) {
	for health, want := range map[model.GatewayHealth]model.ConditionStatus{
		model.GatewayDisconnected: model.ConditionTrue, model.GatewayDead: model.ConditionFalse, model.GatewayNotServing: model.ConditionFalse,
	} {
		v := sharing(2)
		for number, name := range map[uint32]string{1: "gw-1", 2: "gw-2"} {
			g := *v.Gateways[name]
			g.Meta.Version, g.Status.Health, g.Status.PortalGroupTags = 9, health, nil // so that no port is missing
			v.Put(&g)
			if health != model.GatewayNotServing {
				ends(v, number, start)
			}
		}
		v.TakePlan(placement.Assignment{Targets: []placement.TargetPaths{{Target: "t", Gateways: []uint32{1, 2}, Redundant: true}}})
		target := *v.Targets["t"]
		for _, a := range v.DecideTarget("t", start).Actions {
			modifies(a, &target)
		}
		if ready := conditionOf(t, target.Status.Conditions, model.ConditionReady); ready.Status != want {
			t.Errorf("gateways are %s: %+v", health, ready)
		}
	}
}
