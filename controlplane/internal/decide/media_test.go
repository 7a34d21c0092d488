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
		reason, alarm   string
	}{
		"healthy":   {"", false, model.ConditionTrue, model.ConditionFalse, "Healthy", ""},
		"deleted":   {"the file was deleted", true, model.ConditionFalse, model.ConditionTrue, "MediumFailed", decide.AlarmUnusable},
		"misplaced": {"the file was replaced", false, model.ConditionTrue, model.ConditionTrue, "MediumMisplaced", decide.AlarmUnusable},
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
		if ready.Status != c.ready || degraded.Status != c.degraded || degraded.Reason != c.reason || decision.Alarm != c.alarm {
			t.Errorf("%s: %+v, %+v, alarm %q", name, ready, degraded, decision.Alarm)
		}
		if c.problem == "" {
			continue
		}
		if !strings.Contains(degraded.Message, c.problem) || event == nil || event.Reason != c.reason || !event.Warning {
			t.Errorf("%s: message %q, event %+v", name, degraded.Message, event)
		}
	}
}

// A candidate that cannot open the image leaves the volume with its former owner. The condition names the failure, not the lost
// owner.
func TestAVolumeOfALostOwnerThatNoGatewayCanOpenNamesTheFailure(t *testing.T) {
	v := served("", false)
	connected(v, 1, "later")
	v.Observe(model.Observed{Version: term + 2, Volume: &model.VolumeReport{UID: "u", Gateway: ref(2), VolumeObservation: model.VolumeObservation{
		Epoch: 3, Order: 8, State: model.VolumeFailed, Reason: "the image is 8MiB, recorded are 16MiB", AllocatedBytes: -1}}}, start)
	volume := *v.Volumes["v"]
	volume.Spec.Pool = "pool"
	conditions := v.VolumeConditions(&volume, start)
	for _, kind := range []string{model.ConditionReady, model.ConditionDegraded} {
		if c := conditionOf(t, conditions, kind); c.Reason != "OpenFailed" || !strings.Contains(c.Message, "recorded are 16MiB") {
			t.Errorf("%+v", c)
		}
	}
}

// The commands of hosts wait, so no host can use the volume. The gateways' metrics raise the alert.
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
	if begun == nil || !begun.Warning || begun.Reason != "MediumStuck" || decision.Alarm != "" {
		t.Errorf("event %+v, alarm %q", begun, decision.Alarm)
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
