package decide_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

const initiator = "iqn.2026-11.example:web"

// hosted returns a view of three gateways with a portal each, target t planned on the given ones, and a host that may log in to
// it.
func hosted(limit int32, planned ...uint32) *decide.LeaderView {
	v := known(3)
	for n, name := range []string{"gw-1", "gw-2", "gw-3"} {
		g := *v.Gateways[name]
		g.Meta.Version++
		g.Spec.Portals = []model.Portal{{Fabric: "red", Advertised: fmt.Sprintf("192.0.2.%d:3260", n+1)}}
		v.Put(&g)
	}
	v.Put(&model.Host{Meta: model.Meta{Name: "web", UID: "h", Version: 1}, Spec: model.HostSpec{Initiators: []string{initiator},
		MaxSessions: limit}})
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(2)}, true)
	t := *v.Targets["t"]
	t.Meta.Version++
	t.Spec.IQN, t.Spec.Hosts = "iqn.2026-11.example:t", []string{"web"}
	v.Put(&t)
	plan(v, planned...)
	targetNow(v)
	return v
}

func plan(v *decide.LeaderView, gateways ...uint32) {
	v.TakePlan(placement.Assignment{Targets: []placement.TargetPaths{{Target: "t", Gateways: gateways, Redundant: true}},
		Volumes: []placement.VolumeOwner{{Volume: "v", Owner: 2}}})
}

// logsIn reports a session. Its login and its report occur at this second after the start.
func logsIn(v *decide.LeaderView, gateway, tsih uint32, second int) {
	at := start.Add(time.Duration(second) * time.Second)
	v.PutSession(&model.Session{Gateway: fmt.Sprintf("gw-%d", gateway), GatewayNumber: gateway, TSIH: tsih, HostUID: "h",
		TargetIQN: "iqn.2026-11.example:t", Initiator: initiator, ISID: fmt.Sprint(tsih), PortalGroupTag: gateway, LoginTime: at}, at)
}

// asked returns the sessions that a decision asks to log out, as gateway/TSIH.
func asked(decision decide.Decision) []string {
	var all []string
	for _, a := range decision.Actions {
		if as[*decide.Evict](a) != nil {
			all = append(all, fmt.Sprintf("%d/%d", as[*decide.Evict](a).Session.GatewayNumber, as[*decide.Evict](a).Session.TSIH))
		}
	}
	return all
}

func done(v *decide.LeaderView, decision decide.Decision, now time.Time) {
	for _, a := range decision.Actions {
		if as[*decide.Evict](a) != nil {
			a.About().Done(v, now)
		}
	}
}

func TestTheNewestSessionsBeyondAHostsLimitAreAskedToLeave(t *testing.T) {
	after := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	four := func(v *decide.LeaderView) {
		for n, gateway := range []uint32{2, 1, 3, 1} { // on all gateways, and not in the order of their numbers
			logsIn(v, gateway, uint32(10+n), n)
		}
	}
	for name, c := range map[string]struct {
		limit   int32
		happens func(*decide.LeaderView)
		now     time.Time
		want    []string
		again   bool
	}{
		"none":                      {4, four, after(60), nil, false},
		"one":                       {3, four, after(60), []string{"1/13"}, false},
		"two, oldest of them first": {2, four, after(60), []string{"3/12", "1/13"}, false},
		"the first one stays":       {1, four, after(60), []string{"1/11", "3/12", "1/13"}, false},
		"not before what is lost has been found out": {3, four, after(4), nil, true},
		"one has ended": {3, func(v *decide.LeaderView) {
			four(v)
			v.EndSession(&model.Session{GatewayNumber: 1, TSIH: 11})
		}, after(60), nil, false},
		"those of a dead gateway count no more": {3, func(v *decide.LeaderView) {
			four(v)
			ends(v, 3, start)
			g := *v.Gateways["gw-3"]
			g.Meta.Version++
			g.Status.Health = model.GatewayDead
			v.Put(&g)
		}, after(60), nil, false},
		"those of a gateway without a stream do: it serves on (R3)": {3, func(v *decide.LeaderView) {
			four(v)
			ends(v, 3, start)
		}, after(60), []string{"1/13"}, false},
		"those of a gateway that has only just connected do": {3, func(v *decide.LeaderView) {
			four(v)
			g := *v.Gateways["gw-3"]
			g.Meta.Version++
			g.Status.Incarnation = "" // it is stored a moment later
			v.Put(&g)
		}, after(60), []string{"1/13"}, false},
		"a number that was given again is another session": {3, func(v *decide.LeaderView) {
			four(v)
			logsIn(v, 2, 10, 58)
		}, after(60), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := hosted(c.limit, 1, 2, 3)
			c.happens(v)
			decision := v.DecideHost("web", c.now)
			if got := asked(decision); !slices.Equal(got, c.want) {
				t.Errorf("asked: %v, want %v", got, c.want)
			}
			if again := decision.Wait > 0; again != c.again {
				t.Errorf("looks again after %v", decision.Wait)
			}
			done(v, decision, c.now)
			if got := asked(v.DecideHost("web", c.now)); len(got) != 0 {
				t.Errorf("asked again: %v", got)
			}
		})
	}
}

func TestASessionAboveTheLimitIsReportedWithHostInitiatorAndLimit(t *testing.T) {
	v := hosted(1, 1, 2, 3)
	logsIn(v, 1, 1, 0)
	logsIn(v, 2, 2, 1)
	decision := v.DecideHost("web", start.Add(time.Minute))
	if len(decision.Actions) != 1 || decision.Actions[0].About().Event == nil {
		t.Fatalf("%+v", decision)
	}
	message := decision.Actions[0].About().Event.Message
	for _, word := range []string{"host web", initiator, "may have 1", "gw-2"} {
		if !strings.Contains(message, word) {
			t.Errorf("%q does not name %q", message, word)
		}
	}
}

// R9: a session leaves a portal that its host is no longer shown only while another session stays.
func TestASessionIsAskedToMoveOnlyWhileAnotherOneStays(t *testing.T) {
	later := start.Add(10 * time.Second)
	for name, c := range map[string]struct {
		happens func(*decide.LeaderView)
		want    []string
	}{
		"one at a gateway that leaves, one at one that stays": {func(v *decide.LeaderView) {
			logsIn(v, 1, 1, 0)
			logsIn(v, 2, 2, 0)
		}, []string{"1/1"}},
		"its only one": {func(v *decide.LeaderView) { logsIn(v, 1, 1, 0) }, nil},
		"both at the gateway that leaves": {func(v *decide.LeaderView) {
			logsIn(v, 1, 1, 0)
			logsIn(v, 1, 2, 0)
		}, nil},
		"two of them: one at a time": {func(v *decide.LeaderView) {
			logsIn(v, 1, 1, 0)
			logsIn(v, 1, 3, 0)
			logsIn(v, 3, 2, 0)
		}, []string{"1/1"}},
		"all where they should be": {func(v *decide.LeaderView) {
			logsIn(v, 2, 1, 0)
			logsIn(v, 3, 2, 0)
		}, nil},
		"the one that stays is at a gateway without a stream, which may be gone": {func(v *decide.LeaderView) {
			logsIn(v, 1, 1, 0)
			logsIn(v, 2, 2, 0)
			ends(v, 2, start)
		}, nil},
		"the one that would stay is on its way out itself": {func(v *decide.LeaderView) {
			logsIn(v, 1, 1, 0)
			logsIn(v, 2, 2, 1)
			host := *v.Hosts["web"]
			host.Meta.Version++
			host.Spec.MaxSessions = 1
			v.Put(&host)
			done(v, v.DecideHost("web", later), later)
		}, nil},
		"of another initiator": {func(v *decide.LeaderView) {
			logsIn(v, 1, 1, 0)
			v.PutSession(&model.Session{GatewayNumber: 2, TSIH: 2, HostUID: "h", TargetIQN: "iqn.2026-11.example:t",
				Initiator: initiator + "2", PortalGroupTag: 2}, start)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := hosted(64, 1, 2)
			c.happens(v)
			plan(v, 2, 3) // gateway 1 leaves
			targetNow(v)
			if target := v.Targets["t"]; slices.Contains(target.Shown(), 1) {
				t.Fatalf("shown are %v of %v", target.Shown(), target.Status.PathSet)
			}
			if got := asked(v.DecideTarget("t", later)); !slices.Equal(got, c.want) {
				t.Errorf("asked: %v, want %v", got, c.want)
			}
		})
	}
}

func TestTheNextSessionOfAnInitiatorMovesOnceTheFirstHasHadTimeToComeBack(t *testing.T) {
	v := hosted(64, 1, 2)
	logsIn(v, 1, 1, 0)
	logsIn(v, 1, 3, 0)
	logsIn(v, 2, 2, 0)
	plan(v, 2, 3)
	targetNow(v)
	first := v.DecideTarget("t", start)
	done(v, first, start)
	if got := asked(v.DecideTarget("t", start.Add(2*decide.RebalancePause))); len(got) != 0 {
		t.Errorf("asked while the first is on its way: %v", got)
	}
	v.EndSession(&model.Session{GatewayNumber: 1, TSIH: 1})
	decision := v.DecideTarget("t", start)
	if got := asked(decision); len(got) != 0 || decision.Wait <= 0 || decision.Wait > decide.RebalancePause {
		t.Errorf("asked at once: %v, again after %v", got, decision.Wait)
	}
	decision = v.DecideTarget("t", start.Add(decide.RebalancePause))
	if got := asked(decision); !slices.Equal(got, []string{"1/3"}) {
		t.Errorf("asked later: %v", got)
	}
	done(v, decision, start.Add(decide.RebalancePause))
	v.EndSession(&model.Session{GatewayNumber: 1, TSIH: 3})
	logsIn(v, 1, 4, 6) // the session returned to its previous portal
	if got := asked(v.DecideTarget("t", start.Add(2*decide.RebalancePause))); len(got) != 0 {
		t.Errorf("asked again and again: %v", got)
	}
}

func TestSessionsMoveNoFasterThanTheBound(t *testing.T) {
	v := hosted(64, 1, 2)
	for n := range 3 * uint32(decide.MaxRebalanced) {
		for gateway := uint32(1); gateway <= 2; gateway++ {
			v.PutSession(&model.Session{GatewayNumber: gateway, TSIH: n, HostUID: "h", TargetIQN: "iqn.2026-11.example:t",
				Initiator: fmt.Sprintf("%s-%d", initiator, n), PortalGroupTag: gateway}, start)
		}
	}
	plan(v, 2, 3)
	targetNow(v)
	for second := range 3 {
		now := start.Add(time.Duration(second) * decide.RebalanceWindow)
		decision := v.DecideTarget("t", now)
		if got := len(asked(decision)); got != decide.MaxRebalanced {
			t.Fatalf("%d are asked in second %d", got, second)
		}
		done(v, decision, now)
		if got := len(asked(v.DecideTarget("t", now))); got != 0 {
			t.Errorf("%d more are asked in second %d", got, second)
		}
	}
}

// A leaving gateway waits for sessions to move, but not without limit.
func TestAGatewayLeavesAPathSetOnceNoSessionIsOnItOrNoneWantsToMove(t *testing.T) {
	v := hosted(64, 1, 2)
	logsIn(v, 1, 1, 0)
	plan(v, 2, 3)
	target, _ := targetNow(v)
	if !slices.Equal(target.Status.PathSet, []uint32{1, 2, 3}) {
		t.Fatalf("path set %v while a session is on gateway 1", target.Status.PathSet)
	}
	if decision := v.DecideTarget("t", start); decision.Wait != decide.LeaveTimeout {
		t.Errorf("it is looked at again after %v", decision.Wait)
	}
	late := *target
	carriedOut(v, &late, v.DecideTarget("t", start.Add(decide.LeaveTimeout)))
	if got := v.Targets["t"].Status; !slices.Equal(got.PathSet, []uint32{2, 3}) || len(got.Leaving) != 0 {
		t.Errorf("path set %v, leaving %v after the time is over", got.PathSet, got.Leaving)
	}

	v = hosted(64, 1, 2)
	logsIn(v, 1, 1, 0)
	plan(v, 2, 3)
	targetNow(v)
	v.EndSession(&model.Session{GatewayNumber: 1, TSIH: 1})
	if target, _ = targetNow(v); !slices.Equal(target.Status.PathSet, []uint32{2, 3}) {
		t.Errorf("path set %v once the session is over", target.Status.PathSet)
	}
}
