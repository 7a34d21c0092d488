package decide_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// Stored times come from the wall clock of the replica that led then. However wrong that is, a leader waits for the right time:
// less would fence a working owner, more would delay a takeover.
func TestALeaderMeasuresItsWaitsByItsOwnClock(t *testing.T) {
	states := map[string]struct {
		ownership model.Ownership
		limit     time.Duration
		after     model.OwnershipState
	}{
		"moving": {model.Ownership{State: model.Moving, Epoch: 3, Owner: ref(1), Next: ref(2), Order: 7}, decide.MoveTimeout,
			model.Fencing},
		"opening": {model.Ownership{State: model.Opening, Epoch: 3, Owner: ref(1), Order: 7}, decide.FenceOpening, model.Fencing},
	}
	for name, c := range states {
		for wrong, by := range map[string]time.Duration{"a day behind": -24 * time.Hour, "a day ahead": 24 * time.Hour, "right": 0} {
			t.Run(name+", "+wrong, func(t *testing.T) {
				v := known(2)
				c.ownership.Since = start.Add(by)
				exported(v, c.ownership, true)
				if ownership, _ := next(t, v, start.Add(c.limit-1)); ownership.State != c.ownership.State {
					t.Errorf("too early: %s", ownership.State)
				}
				if ownership, _ := next(t, v, start.Add(c.limit)); ownership.State != c.after {
					t.Errorf("in time: %s", ownership.State)
				}
			})
		}
	}
}

func TestTheMoveTimeoutRestartsWithANewOrder(t *testing.T) {
	v := known(2)
	moving := model.Ownership{State: model.Moving, Epoch: 3, Owner: ref(1), Next: ref(2), Order: 7, Since: start}
	exported(v, moving, true)
	later := start.Add(decide.MoveTimeout)
	moving.Order = 9
	v.Put(&model.Volume{Meta: model.Meta{Name: "v", UID: "u", Version: 2}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20},
		Status: model.VolumeStatus{CapacityBytes: 1 << 20, Ownership: moving}})
	if ownership, decision := next(t, v, later); ownership.State != model.Moving || decision.Wait != decide.MoveTimeout {
		t.Errorf("%s, looked at again in %v", ownership.State, decision.Wait)
	}
}

// A gateway that leaves a path set waits for LeaveTimeout if its sessions do not move, regardless of the stored time.
func TestAGatewayLeavesAPathSetWhateverTheClockSaidThatStoredIt(t *testing.T) {
	for wrong, by := range map[string]time.Duration{"a day behind": -24 * time.Hour, "a day ahead": 24 * time.Hour, "right": 0} {
		t.Run(wrong, func(t *testing.T) {
			v := hosted(64, 1, 2)
			logsIn(v, 1, 1, 0)
			leaving := *v.Targets["t"]
			leaving.Meta.Version++
			leaving.Status.Leaving = map[uint32]time.Time{1: start.Add(by)}
			v.Put(&leaving)
			plan(v, 2)
			for _, c := range []struct {
				after, wait time.Duration
				stays       bool
			}{{0, decide.LeaveTimeout, true}, {decide.LeaveTimeout - 1, 1, true}, {decide.LeaveTimeout, 0, false}} {
				target := *v.Targets["t"]
				decision := v.DecideTarget("t", start.Add(c.after))
				for _, a := range decision.Actions {
					modifies(a, &target)
				}
				if stays := slices.Contains(target.Status.PathSet, 1); stays != c.stays || stays && decision.Wait != c.wait {
					t.Errorf("after %v it stays: %v, and is looked at again in %v", c.after, stays, decision.Wait)
				}
			}
		})
	}
}

func TestTheTimeoutOfALeavingGatewayRestartsWhenItLeavesAgain(t *testing.T) {
	v := hosted(64, 1, 2)
	logsIn(v, 1, 1, 0)
	plan(v, 2, 3)
	targetNow(v)
	again := *v.Targets["t"]
	again.Meta.Version++
	again.Status.Leaving = map[uint32]time.Time{1: start.Add(time.Minute)}
	v.Put(&again)
	if decision := v.DecideTarget("t", start.Add(time.Minute)); decision.Wait != decide.LeaveTimeout {
		t.Errorf("it is looked at again in %v", decision.Wait)
	}
}

func TestAJobThatFailedIsTriedAgainWhateverTheClockSaidThatStoredIt(t *testing.T) {
	for wrong, by := range map[string]time.Duration{"a day behind": -24 * time.Hour, "a day ahead": 24 * time.Hour} {
		t.Run(wrong, func(t *testing.T) {
			v := onDevices()
			v.PutJob(&model.Job{ID: "u.create", Action: model.JobCreateImage, Gateway: 1, Version: 3, Attempt: 1,
				Result: model.JobResult{Problem: "no space", At: start.Add(by)}})
			if jobs := jobsOf(v.DecideVolume("v", start.Add(decide.MinRetry))); len(jobs) != 1 {
				t.Errorf("%d jobs when its time has come", len(jobs))
			}
		})
	}
}
