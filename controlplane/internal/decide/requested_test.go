package decide_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

// requested requests a move of the volume as the store does.
func requested(v *decide.LeaderView, gateway uint32) {
	volume := *v.Volumes["v"]
	volume.Meta.Version++
	volume.Status.MoveRequest, volume.Status.Refusal = &model.MoveRequest{Gateway: gateway, Since: start}, nil
	v.Put(&volume)
}

// settle applies decisions until there are no more, and returns the condition Progressing.
func settle(t *testing.T, v *decide.LeaderView, now time.Time) model.Condition {
	t.Helper()
	for range 10 {
		decision := v.DecideVolume("v", now)
		if len(decision.Actions) == 0 {
			for _, c := range v.Volumes["v"].Status.Conditions {
				if c.Type == model.ConditionProgressing {
					return c
				}
			}
			t.Fatal("nothing is reported")
		}
		for _, a := range decision.Actions {
			volume := *v.Volumes["v"]
			volume.Status.Conditions = append([]model.Condition(nil), volume.Status.Conditions...)
			volume.Meta.Version++
			if as[*decide.ChangeOwner](a) != nil {
				ownership, err := as[*decide.ChangeOwner](a).Owning(&volume)
				if err != nil {
					t.Fatal(err)
				}
				ownership.Order, ownership.Since = volume.Status.Ownership.Order+1, now
				volume.Status.Ownership = ownership
			} else if !modifies(a, &volume) {
				continue
			}
			v.Put(&volume)
			if a.About().Done != nil {
				a.About().Done(v, now)
			}
		}
	}
	t.Fatal("it does not come to rest")
	return model.Condition{}
}

var atOne = model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}

func TestARefusedMoveIsReportedWithARemedyUntilTheNextRequest(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*decide.LeaderView)
		to      uint32
		says    string
	}{
		"to one that drains": {func(v *decide.LeaderView) {
			g := *v.Gateways["gw-2"]
			g.Status.Drain, g.Meta.Version = true, 2
			v.Put(&g)
		}, 2, "sluicectl gateway undrain gw-2"},
		"to one without a stream":     {func(v *decide.LeaderView) { ends(v, 2, start) }, 2, "sluicectl gateway describe gw-2"},
		"to one outside the path set": {func(*decide.LeaderView) {}, 3, "gateway gw-3 is not in the target's path set"},
		"to one that was removed":     {func(*decide.LeaderView) {}, 9, "gateway number 9 is not there any more"},
		"anywhere, with no other gateway": {func(v *decide.LeaderView) { ends(v, 2, start) }, 0,
			"no other gateway can own the volume now"},
	} {
		t.Run(name, func(t *testing.T) {
			v := known(3)
			exported(v, atOne, true)
			recorded(v, ref(3), 1, model.RadosClient{Client: "c3"})
			c.happens(v)
			requested(v, c.to)
			condition := settle(t, v, start)
			if condition.Status != model.ConditionFalse || condition.Reason != "MoveRefused" || !strings.Contains(condition.Message, c.says) {
				t.Errorf("%+v", condition)
			}
			if v.Volumes["v"].Status.MoveRequest != nil || v.Volumes["v"].Status.Ownership != atOne {
				t.Errorf("%+v", v.Volumes["v"].Status)
			}
			requested(v, 1) // gateway 1 owns it already: this is no problem
			if condition := settle(t, v, start); condition.Reason != "Settled" || condition.Message != "" {
				t.Errorf("after the next request: %+v", condition)
			}
		})
	}
}

func TestARequestedMoveIsUnderWayUntilItsGatewayServes(t *testing.T) {
	v := known(2)
	exported(v, atOne, true)
	requested(v, 2)
	if condition := settle(t, v, start); condition.Status != model.ConditionTrue || condition.Reason != "Moving" {
		t.Fatalf("%+v", condition)
	}
	ownership := v.Volumes["v"].Status.Ownership
	observed(v, ref(1), model.VolumeReleased, ownership.Epoch, ownership.Order)
	if condition := settle(t, v, start); condition.Reason != "Opening" {
		t.Fatalf("%+v", condition)
	}
	ownership = v.Volumes["v"].Status.Ownership
	observed(v, ref(2), model.VolumeServing, ownership.Epoch, ownership.Order)
	if condition := settle(t, v, start); condition.Reason != "Settled" || v.Volumes["v"].Status.Move != nil {
		t.Fatalf("%+v, %+v", condition, v.Volumes["v"].Status)
	}
}

// A request that finds the volume at its destination counts as carried out: after a restore of the store, an administrator may
// request what the gateways have done already.
func TestRebalancingLeavesAVolumeWhereItWasAskedToBe(t *testing.T) {
	for name, moves := range map[string]bool{"moved there": true, "there already": false} {
		t.Run(name, func(t *testing.T) {
			v := known(2)
			exported(v, atOne, true)
			asked, other := uint32(1), uint32(2)
			if moves {
				asked, other = 2, 1
			}
			v.TakePlan(placement.Assignment{Targets: []placement.TargetPaths{{Target: "t", Gateways: []uint32{1, 2}, Redundant: true}},
				Volumes: []placement.VolumeOwner{{Volume: "v", Owner: other}}})
			requested(v, asked)
			settle(t, v, start)
			if moves {
				ownership := v.Volumes["v"].Status.Ownership
				observed(v, ref(1), model.VolumeReleased, ownership.Epoch, ownership.Order)
				settle(t, v, start)
				ownership = v.Volumes["v"].Status.Ownership
				observed(v, ref(2), model.VolumeServing, ownership.Epoch, ownership.Order)
			}
			for _, now := range []time.Time{start, start.Add(decide.RequestedMoveHolds - 1)} {
				settle(t, v, now)
				if ownership := v.Volumes["v"].Status.Ownership; ownership.State != model.Owned || ownership.Owner != ref(asked) {
					t.Errorf("%v after the request: %+v", now.Sub(start), ownership)
				}
			}
			settle(t, v, start.Add(decide.RequestedMoveHolds))
			if ownership := v.Volumes["v"].Status.Ownership; ownership.State != model.Moving || ownership.Next != ref(other) {
				t.Errorf("once the request is an hour old: %+v", ownership)
			}
		})
	}
}

// A move whose owner is fenced passes through a state without an owner. Then the requested gateway is chosen, not the one that
// placement prefers.
func TestARequestedMoveEndsWhereItWasAskedForThoughItsOwnerHadToBeShutOut(t *testing.T) {
	v := known(3)
	exported(v, atOne, true)
	target := *v.Targets["t"]
	target.Status.PathSet, target.Meta.Version = []uint32{1, 2, 3}, 2
	v.Put(&target)
	recorded(v, ref(3), 1, model.RadosClient{Client: "c3"})
	requested(v, 3)
	if condition := settle(t, v, start); condition.Reason != "Moving" {
		t.Fatalf("%+v", condition)
	}
	late := start.Add(decide.MoveTimeout)
	settle(t, v, late)
	if ownership := v.Volumes["v"].Status.Ownership; ownership.State != model.Fencing {
		t.Fatalf("%+v", ownership)
	}
	recorded(v, ref(1), 2, fenced)
	if condition := settle(t, v, late); condition.Reason != "Opening" {
		t.Fatalf("%+v", condition)
	}
	if ownership := v.Volumes["v"].Status.Ownership; ownership.Owner != ref(3) {
		t.Errorf("%+v", ownership)
	}
}

func TestAnAbandonedMoveIsReportedWithItsReason(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(v *decide.LeaderView, ownership model.Ownership)
		rbd     bool
		at      time.Time
		says    string
	}{
		"its gateway is gone": {func(v *decide.LeaderView, _ model.Ownership) { ends(v, 2, start) }, true, start,
			"the next owner, is gone"},
		"its gateway cannot open it": {func(v *decide.LeaderView, ownership model.Ownership) {
			observed(v, ref(1), model.VolumeReleased, ownership.Epoch, ownership.Order)
			settle(t, v, start)
			ownership = v.Volumes["v"].Status.Ownership
			observed(v, ref(2), model.VolumeFailed, ownership.Epoch, ownership.Order)
			settle(t, v, start)
			ownership = v.Volumes["v"].Status.Ownership
			observed(v, ref(1), model.VolumeServing, ownership.Epoch, ownership.Order)
		}, true, start, "gateway gw-2 could not open the volume"},
		"the owner does not release it": {func(*decide.LeaderView, model.Ownership) {}, false,
			start.Add(decide.MoveTimeout), "gateway gw-1 did not release the volume within"},
	} {
		t.Run(name, func(t *testing.T) {
			v := known(2)
			exported(v, atOne, c.rbd)
			if !c.rbd {
				g := *v.Gateways["gw-2"]
				g.Spec.Node, g.Meta.Version = "node-1", 2
				v.Put(&g)
			}
			requested(v, 2)
			if condition := settle(t, v, start); condition.Reason != "Moving" {
				t.Fatalf("%+v", condition)
			}
			c.happens(v, v.Volumes["v"].Status.Ownership)
			condition := settle(t, v, c.at)
			if condition.Status != model.ConditionFalse || condition.Reason != "MoveFailed" || !strings.Contains(condition.Message, c.says) ||
				!strings.Contains(condition.Message, "gateway gw-2 was to own the volume, and gateway gw-1 does") {
				t.Errorf("%+v", condition)
			}
		})
	}
}
