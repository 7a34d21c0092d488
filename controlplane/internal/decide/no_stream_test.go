package decide_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// A dying gateway first loses its stream. Its volumes report that only if it is not replaced at once.
func TestAVolumeTellsLateThatItsOwnerHasNoStream(t *testing.T) {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}, false)
	conditionAt := func(now time.Time) (model.Condition, decide.Decision) {
		decision := v.DecideVolume("v", now)
		volume := *v.Volumes["v"]
		volume.Status.Conditions = slices.Clone(volume.Status.Conditions)
		for _, a := range decision.Actions {
			modifies(a, &volume)
		}
		volume.Meta.Version++
		v.Put(&volume)
		at := slices.IndexFunc(volume.Status.Conditions, func(c model.Condition) bool { return c.Type == model.ConditionDegraded })
		return volume.Status.Conditions[at], decision
	}
	conditionAt(start)
	ends(v, 1, start)
	if condition, decision := conditionAt(start.Add(time.Second)); condition.Status != model.ConditionFalse || len(decision.Actions) != 0 ||
		decision.Wait != decide.NoStreamReportDelay-time.Second {
		t.Errorf("a second after the stream ended: %v, %d actions, looked at again after %v", condition, len(decision.Actions), decision.Wait)
	}
	if condition, _ := conditionAt(start.Add(decide.NoStreamReportDelay)); condition.Status != model.ConditionTrue || condition.Reason != "NoStream" {
		t.Errorf("once it has been gone for long: %v", condition)
	}
}
