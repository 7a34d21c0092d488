package orchestrator_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/orchestrator"
	"sluice.dev/sluice/controlplane/internal/store"
)

// What is stored bears the wall clock of whichever replica led then. However wrong that is, a leader waits as long as it should,
// neither less, which would shut an owner out that is at work, nor more.
func TestWhatALeaderWaitsForIsNotMeasuredByTheWallClockOfWhoeverStoredIt(t *testing.T) {
	states := map[string]struct {
		is    model.Ownership
		limit time.Duration
		after model.OwnershipState
	}{
		"moving": {model.Ownership{State: model.Moving, Epoch: 3, Owner: ref(1), Next: ref(2), Order: 7}, orchestrator.MoveTimeout,
			model.Fencing},
		"opening": {model.Ownership{State: model.Opening, Epoch: 3, Owner: ref(1), Order: 7}, orchestrator.FenceOpening, model.Fencing},
	}
	for name, c := range states {
		for wrong, by := range map[string]time.Duration{"a day behind": -24 * time.Hour, "a day ahead": 24 * time.Hour, "right": 0} {
			t.Run(name+", "+wrong, func(t *testing.T) {
				v := known(2)
				c.is.Since = start.Add(by)
				exported(v, c.is, true)
				if is, _ := next(t, v, start.Add(c.limit-1)); is.State != c.is.State {
					t.Errorf("too early: %s", is.State)
				}
				if is, _ := next(t, v, start.Add(c.limit)); is.State != c.after {
					t.Errorf("in time: %s", is.State)
				}
			})
		}
	}
}

func TestAnotherOrderIsWaitedForAnew(t *testing.T) {
	v := known(2)
	moving := model.Ownership{State: model.Moving, Epoch: 3, Owner: ref(1), Next: ref(2), Order: 7, Since: start}
	exported(v, moving, true)
	later := start.Add(orchestrator.MoveTimeout)
	moving.Order = 9
	v.Put(&model.Volume{Meta: model.Meta{Name: "v", UID: "u", Version: 2}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20},
		Status: model.VolumeStatus{CapacityBytes: 1 << 20, Ownership: moving}})
	if is, d := next(t, v, later); is.State != model.Moving || d.Wait != orchestrator.MoveTimeout {
		t.Errorf("%s, looked at again in %v", is.State, d.Wait)
	}
}

func TestAJobThatFailedIsTriedAgainWhateverTheClockSaidThatStoredIt(t *testing.T) {
	for wrong, by := range map[string]time.Duration{"a day behind": -24 * time.Hour, "a day ahead": 24 * time.Hour} {
		t.Run(wrong, func(t *testing.T) {
			v := onDevices()
			v.PutJob(&store.Job{ID: "u.create", Action: store.JobCreateImage, Gateway: 1, Version: 3, Attempt: 1,
				Result: store.JobResult{Problem: "no space", At: start.Add(by)}})
			if jobs := jobsOf(v.DecideVolume("v", start.Add(orchestrator.MinRetry))); len(jobs) != 1 {
				t.Errorf("%d jobs when its time has come", len(jobs))
			}
		})
	}
}
