package decide_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// draining returns a view of a volume in Ceph whose owner gw-1 drains, and which placement gives to gw-2. All gateways export its
// target.
func draining(gateways int) *decide.LeaderView {
	v := known(gateways)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7}, true)
	pathSet := []uint32{1, 2, 3}[:gateways]
	v.Put(&model.Target{Meta: model.Meta{Name: "t", UID: "t", Version: 2},
		Spec: model.TargetSpec{Paths: 2, Luns: []model.TargetLun{{Volume: "v"}}}, Status: model.TargetStatus{PathSet: pathSet}})
	if gateways > 2 {
		recorded(v, ref(3), 1, model.RadosClient{Client: "c3"})
	}
	g := *v.Gateways["gw-1"]
	g.Status.Drain, g.Meta.Version = true, 2
	v.Put(&g)
	v.TakePlan(placement.Assignment{Targets: []placement.TargetPaths{{Target: "t", Gateways: pathSet, Redundant: true}},
		Volumes: []placement.VolumeOwner{{Volume: "v", Owner: 2}}})
	return v
}

func troubled(v *decide.LeaderView, number uint32, problem string) {
	v.Observe(model.Observed{Version: term + 5, Pool: &model.PoolReport{UID: "p", Gateway: ref(number), Problem: problem}}, start)
}

// cutOff has the events after which gw-2 does not reach the pool.
var cutOff = map[string]struct {
	happens func(*decide.LeaderView)
	why     string
}{
	"no client is recorded":     {func(v *decide.LeaderView) { recorded(v, ref(2), 2) }, "has not reported its Ceph client there"},
	"it has reported a problem": {func(v *decide.LeaderView) { troubled(v, 2, "no monitor answers") }, "no monitor answers"},
}

func TestADrainTakesAnotherGatewayWhereThePlannedOneDoesNotReachThePool(t *testing.T) {
	for name, c := range cutOff {
		t.Run(name, func(t *testing.T) {
			v := draining(3)
			c.happens(v)
			if ownership, _ := next(t, v, start); ownership.State != model.Moving || ownership.Next != ref(3) {
				t.Errorf("%+v", ownership)
			}
			troubled(v, 2, "")
			recorded(v, ref(2), 3, model.RadosClient{Client: "c2"})
			if ownership, _ := next(t, v, start); ownership.State != model.Moving || ownership.Next != ref(2) {
				t.Errorf("the planned gateway reaches the pool again: %+v", ownership)
			}
		})
	}
}

func TestADrainReportsWhyNoGatewayCanTakeItsVolumes(t *testing.T) {
	for name, c := range cutOff {
		t.Run(name, func(t *testing.T) {
			v := draining(2)
			c.happens(v)
			if ownership, decision := next(t, v, start); ownership.State != model.Owned || decision.Wait == 0 || decision.Wait > decide.StayRetry {
				t.Fatalf("%+v, looked at again in %v", ownership, decision.Wait)
			}
			condition := readyOf(t, v)
			for _, part := range []string{"volume v can't leave it", "gateway gw-2", c.why, "sluicectl doctor"} {
				if !strings.Contains(condition.Message, part) {
					t.Errorf("%q misses %q", condition.Message, part)
				}
			}
			if condition.Status != model.ConditionFalse || condition.Reason != "DrainBlocked" {
				t.Errorf("%+v", condition)
			}
			troubled(v, 2, "")
			recorded(v, ref(2), 3, model.RadosClient{Client: "c2"})
			next(t, v, start)
			if condition := readyOf(t, v); condition.Reason != "Draining" {
				t.Errorf("it goes on, and the condition is %+v", condition)
			}
		})
	}
}

func TestAVolumeThatPlacementCannotGiveAwaySaysSoAtTheGatewayThatDrains(t *testing.T) {
	v := draining(2)
	v.TakePlan(placement.Assignment{Volumes: []placement.VolumeOwner{{Volume: "v", Owner: 1}}, Problems: []placement.Problem{{
		Kind: model.KindVolume, Name: "v", Reason: placement.ReasonDrainBlocked, Wrong: "its data is here", Mend: "add a gateway"}}})
	if condition := readyOf(t, v); condition.Reason != "DrainBlocked" || condition.Message != "volume v: its data is here; add a gateway" {
		t.Errorf("%+v", condition)
	}
}

// readyOf returns the Ready condition of gw-1, which `sluicectl gateway drain --wait` shows.
func readyOf(t *testing.T, v *decide.LeaderView) model.Condition {
	t.Helper()
	g := *v.Gateways["gw-1"]
	for _, a := range v.DecideGateway("gw-1", start).Actions {
		modifies(a, &g)
	}
	return conditionOf(t, g.Status.Conditions, model.ConditionReady)
}
