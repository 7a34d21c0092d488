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
	told := func(now time.Time) (model.Condition, decide.Decision) {
		d := v.DecideVolume("v", now)
		volume := *v.Volumes["v"]
		volume.Status.Conditions = slices.Clone(volume.Status.Conditions)
		for _, a := range d.Actions {
			modifies(a, &volume)
		}
		volume.Meta.Version++
		v.Put(&volume)
		at := slices.IndexFunc(volume.Status.Conditions, func(c model.Condition) bool { return c.Type == model.ConditionDegraded })
		return volume.Status.Conditions[at], d
	}
	told(start)
	ends(v, 1, start)
	if is, d := told(start.Add(time.Second)); is.Status != model.ConditionFalse || len(d.Actions) != 0 ||
		d.Wait != decide.NoStreamTold-time.Second {
		t.Errorf("a second after the stream ended: %v, %d actions, looked at again after %v", is, len(d.Actions), d.Wait)
	}
	if is, _ := told(start.Add(decide.NoStreamTold)); is.Status != model.ConditionTrue || is.Reason != "NoStream" {
		t.Errorf("once it has been gone for long: %v", is)
	}
}
