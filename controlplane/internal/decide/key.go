package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Key names the unit of a decision (R15): an object, or a job, whose object may be gone.
type Key struct {
	Kind model.Kind
	Name string
}

// KindJob is the Kind of a job's Key. Jobs are not objects.
const KindJob model.Kind = "Job"

// Decide returns what to do for one object now. It changes nothing itself.
func (v *LeaderView) Decide(key Key, now time.Time) Decision {
	decide := rulesOf(key.Kind).decide
	if decide == nil {
		return Decision{}
	}
	return decide(v, key.Name, now)
}
