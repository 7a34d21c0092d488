package decide_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// served returns a view in which gateway 1 owns volume "v" in epoch 3 and reports this health of its medium.
func served(problem string, notReady bool) *decide.LeaderView {
	return withHealth(model.VolumeObservation{MediumProblem: problem, MediumNotReady: notReady})
}

// withHealth does the same for any health in an observation.
func withHealth(health model.VolumeObservation) *decide.LeaderView {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}, false)
	health.Epoch, health.Order, health.State = 3, 7, model.VolumeServing
	health.CapacityBytes, health.AllocatedBytes = 1<<20, -1
	v.Observe(model.Observed{Version: term + 1, Volume: &model.VolumeReport{UID: "u", Gateway: ref(1), VolumeObservation: health}}, start)
	return v
}

func TestAVolumeWhoseMediumFailedIsNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		problem         string
		notReady        bool
		ready, degraded model.ConditionStatus
		reason          string
	}{
		"healthy":   {"", false, model.ConditionTrue, model.ConditionFalse, "Healthy"},
		"deleted":   {"the file was deleted", true, model.ConditionFalse, model.ConditionTrue, "MediumFailed"},
		"misplaced": {"the file was replaced", false, model.ConditionTrue, model.ConditionTrue, "MediumMisplaced"},
	} {
		v := served(c.problem, c.notReady)
		volume, decision := *v.Volumes["v"], v.DecideVolume("v", start)
		var event *decide.Event
		for _, a := range decision.Actions {
			if modifies(a, &volume) && a.About().Event != nil {
				event = a.About().Event
			}
		}
		ready := conditionOf(t, volume.Status.Conditions, model.ConditionReady)
		degraded := conditionOf(t, volume.Status.Conditions, model.ConditionDegraded)
		if ready.Status != c.ready || degraded.Status != c.degraded || degraded.Reason != c.reason {
			t.Errorf("%s: %+v, %+v", name, ready, degraded)
		}
		if c.problem == "" {
			continue
		}
		if !strings.Contains(degraded.Message, c.problem) || event == nil || event.Reason != c.reason || !event.Warning {
			t.Errorf("%s: message %q, event %+v", name, degraded.Message, event)
		}
	}
}

// A candidate that cannot open the image leaves the volume with its former owner. The conditions name the failure, not the lost
// owner. Ready states a pending takeover until the candidate has failed repeatedly.
func TestAVolumeOfALostOwnerThatNoGatewayCanOpenNamesTheFailure(t *testing.T) {
	v := served("", false)
	connected(v, 1, "later")
	v.Observe(model.Observed{Version: term + 2, Volume: &model.VolumeReport{UID: "u", Gateway: ref(2), VolumeObservation: model.VolumeObservation{
		Epoch: 3, Order: 8, State: model.VolumeFailed, Reason: "the image is 8MiB, recorded are 16MiB", AllocatedBytes: -1}}}, start)
	volume := *v.Volumes["v"]
	volume.Spec.Pool = "pool"
	for failures := range decide.TakeoverAttempts + 1 {
		want := map[string]string{model.ConditionReady: model.ReasonTakeoverPending, model.ConditionDegraded: "OpenFailed"}
		if failures == decide.TakeoverAttempts {
			want[model.ConditionReady] = "OpenFailed"
		}
		conditions := v.VolumeConditions(&volume, start)
		for kind, reason := range want {
			if c := conditionOf(t, conditions, kind); c.Reason != reason || !strings.Contains(c.Message, "recorded are 16MiB") {
				t.Errorf("after %d failures: %+v", failures, c)
			}
		}
		for gateway := range uint32(2) {
			v.Fail("v", gateway+1, start)
		}
	}
}

// The commands of hosts wait, so no host can use the volume.
func TestAVolumeWhoseMediumIsStuckIsNotReadyUntilItContinues(t *testing.T) {
	v := withHealth(model.VolumeObservation{MediumStuck: true})
	event := func(volume *model.Volume, decision decide.Decision) *decide.Event {
		for _, a := range decision.Actions {
			if modifies(a, volume) && a.About().Event != nil {
				return a.About().Event
			}
		}
		return nil
	}
	volume, decision := *v.Volumes["v"], v.DecideVolume("v", start)
	begun := event(&volume, decision)
	for kind, status := range map[string]model.ConditionStatus{model.ConditionReady: model.ConditionFalse, model.ConditionDegraded: model.ConditionTrue} {
		if c := conditionOf(t, volume.Status.Conditions, kind); c.Status != status || c.Reason != "MediumStuck" {
			t.Errorf("%+v", c)
		}
	}
	if begun == nil || !begun.Warning || begun.Reason != "MediumStuck" {
		t.Errorf("event %+v", begun)
	}
	volume.Meta.Version++
	v.Put(&volume)
	v.Observe(model.Observed{Version: term + 2, Volume: &model.VolumeReport{UID: "u", Gateway: ref(1), VolumeObservation: model.VolumeObservation{
		Epoch: 3, Order: 7, State: model.VolumeServing, CapacityBytes: 1 << 20, AllocatedBytes: -1}}}, start)
	after := volume
	ended := event(&after, v.DecideVolume("v", start))
	if c := conditionOf(t, after.Status.Conditions, model.ConditionReady); c.Status != model.ConditionTrue {
		t.Errorf("%+v", c)
	}
	if ended == nil || ended.Warning || !strings.Contains(ended.Message, "MediumStuck") {
		t.Errorf("event %+v", ended)
	}
}

// Other commands may succeed, so the volume stays Ready and its owner keeps it.
func TestAVolumeWhoseMediumHasErrorsIsDegraded(t *testing.T) {
	v := withHealth(model.VolumeObservation{MediumErrors: true})
	volume, decision := *v.Volumes["v"], v.DecideVolume("v", start)
	for _, a := range decision.Actions {
		if modifies(a, &volume) && a.About().Event != nil && a.About().Event.Reason != "MediumErrors" {
			t.Errorf("event %+v", a.About().Event)
		}
	}
	for kind, status := range map[string]model.ConditionStatus{model.ConditionReady: model.ConditionTrue, model.ConditionDegraded: model.ConditionTrue} {
		if c := conditionOf(t, volume.Status.Conditions, kind); c.Status != status {
			t.Errorf("%+v", c)
		}
	}
	if c := conditionOf(t, volume.Status.Conditions, model.ConditionDegraded); c.Reason != "MediumErrors" || !strings.Contains(c.Message, "gateway gw-1: ") {
		t.Errorf("%+v", c)
	}
}

func TestTheHealthThatAFormerOwnerReportedDoesNotCount(t *testing.T) {
	v := served("the file was deleted", true)
	volume := *v.Volumes["v"]
	volume.Status.Ownership.Epoch = 4
	volume.Meta.Version++
	v.Put(&volume)
	decided, _ := decidedVolume(v, "v")
	if c := conditionOf(t, decided.Status.Conditions, model.ConditionDegraded); c.Reason == "MediumFailed" {
		t.Errorf("%+v", c)
	}
}
