package decide_test

import (
	"testing"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// A failover of many volumes waits for every write, so the conditions are stored with the change of ownership.
func TestAChangeOfOwnershipIsStoredWithTheConditionsThatFollowFromIt(t *testing.T) {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}, false)
	connected(v, 1, "j") // the owner was restarted
	decision := v.DecideVolume("v", start)
	if len(decision.Actions) != 1 || as[*decide.ChangeOwner](decision.Actions[0]) == nil {
		t.Fatalf("%+v", decision.Actions)
	}
	volume := *v.Volumes["v"]
	next, err := as[*decide.ChangeOwner](decision.Actions[0]).Owning(&volume)
	if err != nil || next.State != model.Acquiring {
		t.Fatalf("%+v, %v", next, err)
	}
	if len(volume.Status.Conditions) != 3 {
		t.Errorf("%+v", volume.Status.Conditions)
	}
	for _, c := range volume.Status.Conditions {
		is, want := c.Status == model.ConditionTrue, c.Type == model.ConditionProgressing
		if is != want || !c.LastTransitionTime.Equal(start) {
			t.Errorf("%+v", c)
		}
	}
	next.Order, next.Since = 8, start
	volume.Status.Ownership, volume.Meta.Version = next, 2
	v.Put(&volume)
	if decision := v.DecideVolume("v", start); len(decision.Actions) != 0 {
		t.Errorf("a write more: %+v", decision.Actions[0])
	}
}

// Conditions about an image depend on its jobs, not on the ownership. Ready determines what hosts are answered.
func TestAChangeOfOwnershipOfAVolumeThatGrowsIsStoredWithReadyAlone(t *testing.T) {
	v := known(2)
	exported(v, model.Ownership{State: model.Unowned}, false)
	v.Put(&model.Volume{Meta: model.Meta{Name: "v", UID: "u", Version: 2}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 2 << 20},
		Status: model.VolumeStatus{CapacityBytes: 1 << 20, Ownership: model.Ownership{State: model.Unowned}}})
	decision := v.DecideVolume("v", start)
	volume := *v.Volumes["v"]
	if len(decision.Actions) != 1 || as[*decide.ChangeOwner](decision.Actions[0]) == nil {
		t.Fatalf("%+v", decision.Actions)
	}
	if _, err := as[*decide.ChangeOwner](decision.Actions[0]).Owning(&volume); err != nil {
		t.Fatal(err)
	}
	if all := volume.Status.Conditions; len(all) != 1 || all[0].Type != model.ConditionReady || all[0].Reason != "Acquiring" {
		t.Errorf("%+v", all)
	}
}

// The number of concurrent moves is counted, so few such decisions are made at a time.
func TestAMoveThatIsDecidedOnByCountingOthersSaysSo(t *testing.T) {
	v := known(2)
	owned := model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}
	exported(v, owned, true)
	g := *v.Gateways["gw-1"]
	g.Status.Drain, g.Meta.Version = true, 2
	v.Put(&g)
	v.TakePlan(placement.Assignment{Targets: []placement.TargetPaths{{Target: "t", Gateways: []uint32{1, 2}, Redundant: true}},
		Volumes: []placement.VolumeOwner{{Volume: "v", Owner: 2}}})
	decision := v.DecideVolume("v", start)
	if len(decision.Actions) == 0 {
		t.Fatal("the volume stays on a gateway that drains")
	}
	if own := as[*decide.ChangeOwner](decision.Actions[0]); own == nil || own.Reason != "Drain" || !own.Counted {
		t.Errorf("%+v", own)
	}
}
