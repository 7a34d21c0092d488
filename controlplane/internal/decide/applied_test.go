package decide_test

import (
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// carriedOut applies the actions of a decision, and returns the reasons of its events.
func carriedOut(v *decide.LeaderView, object model.Object, decision decide.Decision) []string {
	var reasons []string
	for _, a := range decision.Actions {
		switch {
		case as[*decide.AddPorts](a) != nil:
			status := &object.(*model.Target).Status
			status.Ports = append(status.Ports, as[*decide.AddPorts](a).Ports...)
		case modifies(a, object) && a.About().Event != nil:
			reasons = append(reasons, a.About().Event.Reason)
		}
	}
	object.Metadata().Version++
	v.Put(object)
	return reasons
}

// targetNow decides on target t until nothing is left to do. It returns the target and the reasons of the events.
func targetNow(v *decide.LeaderView) (*model.Target, []string) {
	var reasons []string
	for range 5 {
		decision := v.DecideTarget("t", start)
		if len(decision.Actions) == 0 {
			break
		}
		t := *v.Targets["t"]
		t.Status.Conditions = slices.Clone(t.Status.Conditions)
		reasons = append(reasons, carriedOut(v, &t, decision)...)
	}
	return v.Targets["t"], reasons
}

func applies(v *decide.LeaderView, by model.GatewayRef, kind model.Kind, uid, export, refused string) {
	v.Observe(model.Observed{Version: term + 1, Applied: &model.AppliedReport{Kind: kind, UID: uid, Gateway: by,
		Export: export, Refused: refused}}, start)
}

// onBoth returns a view with target t, planned on gateways 1 and 2.
func onBoth() *decide.LeaderView {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1)}, true)
	v.TakePlan(placement.Assignment{Targets: []placement.TargetPaths{{Target: "t", Gateways: []uint32{1, 2}, Redundant: true}},
		Volumes: []placement.VolumeOwner{{Volume: "v", Owner: 1}}})
	targetNow(v)
	return v
}

func conditionOf(t *testing.T, all []model.Condition, kind string) model.Condition {
	t.Helper()
	at := slices.IndexFunc(all, func(c model.Condition) bool { return c.Type == kind })
	if at < 0 {
		t.Fatalf("no condition %s in %+v", kind, all)
	}
	return all[at]
}

func TestAPathIsAppliedForTheTargetAsItIsNowByTheGatewayThatRunsNow(t *testing.T) {
	v := onBoth()
	export := v.Targets["t"].Export()
	for name, c := range map[string]struct {
		by      model.GatewayRef
		export  string
		refused string
		want    bool
	}{
		"as it is now":               {ref(2), export, "", true},
		"as it was before":           {ref(2), "9.9", "", false},
		"refused":                    {ref(2), "", "no luck", false},
		"by a process before":        {model.GatewayRef{Number: 2, Incarnation: "h"}, export, "", false},
		"by one not in the path set": {ref(3), export, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := onBoth()
			applies(v, c.by, model.KindTarget, v.Targets["t"].Meta.UID, c.export, c.refused)
			target, _ := targetNow(v)
			if target.AppliedBy(c.by.Number) != c.want || target.AppliedBy(1) {
				t.Errorf("applied: %v, the target is %s", target.Status.Applied, target.Export())
			}
		})
	}
}

func TestAPathIsNotAppliedAnyMoreOnceTheTargetIsAnotherOne(t *testing.T) {
	v := onBoth()
	applies(v, ref(2), model.KindTarget, v.Targets["t"].Meta.UID, v.Targets["t"].Export(), "")
	target, _ := targetNow(v)
	changed := *target
	changed.Meta.Generation++
	if !target.AppliedBy(2) || changed.AppliedBy(2) {
		t.Errorf("applied: %v before and %v after another spec", target.AppliedBy(2), changed.AppliedBy(2))
	}
	changed = *target
	changed.Status.PathGeneration++
	if changed.AppliedBy(2) {
		t.Error("applied after another path set")
	}
}

func TestARefusalAndItsEndAreEachReportedOnce(t *testing.T) {
	v := onBoth()
	uid := v.Targets["t"].Meta.UID
	applies(v, ref(2), model.KindTarget, uid, "", "LUN 0: no luck")
	target, reasons := targetNow(v)
	c := conditionOf(t, target.Status.Conditions, model.ConditionDegraded)
	if c.Status != model.ConditionTrue || c.Reason != "NotApplied" || c.Message != "gateway gw-2: LUN 0: no luck" {
		t.Errorf("condition: %+v", c)
	}
	if !slices.Equal(reasons, []string{"NotApplied"}) {
		t.Errorf("the reasons are %v", reasons)
	}
	if _, reasons = targetNow(v); len(reasons) != 0 {
		t.Errorf("the reasons are, again, %v", reasons)
	}
	applies(v, ref(2), model.KindTarget, uid, target.Export(), "")
	target, reasons = targetNow(v)
	if c = conditionOf(t, target.Status.Conditions, model.ConditionDegraded); c.Status != model.ConditionFalse {
		t.Errorf("condition after the refusal was corrected: %+v", c)
	}
	if !slices.Equal(reasons, []string{"Applied"}) || !target.AppliedBy(2) {
		t.Errorf("the reasons are %v, applied is %v", reasons, target.Status.Applied)
	}
}

func TestRefusalsOfVolumesAndGatewaysAppearInTheirConditions(t *testing.T) {
	v := onBoth()
	applies(v, ref(2), model.KindVolume, v.Volumes["v"].Meta.UID, "", "no such pool")
	applies(v, ref(2), model.KindGateway, v.Gateways["gw-2"].Meta.UID, "", "listener 1: address in use")
	volume, gateway := *v.Volumes["v"], *v.Gateways["gw-2"]
	if reasons := carriedOut(v, &volume, v.DecideVolume("v", start)); !slices.Contains(reasons, "NotApplied") {
		t.Errorf("the reasons for the volume are %v", reasons)
	}
	if c := conditionOf(t, volume.Status.Conditions, model.ConditionDegraded); c.Message != "gateway gw-2: no such pool" {
		t.Errorf("the volume: %+v", c)
	}
	if reasons := carriedOut(v, &gateway, v.DecideGateway("gw-2", start)); !slices.Contains(reasons, "NotApplied") {
		t.Errorf("the reasons for the gateway are %v", reasons)
	}
	if c := conditionOf(t, gateway.Status.Conditions, model.ConditionDegraded); c.Message != "gateway gw-2: listener 1: address in use" {
		t.Errorf("the gateway: %+v", c)
	}
}
