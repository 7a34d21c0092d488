package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Key names what is decided on by itself (R15): an object, or a job whose object may be gone.
type Key struct {
	Kind model.Kind
	Name string
}

// KindJob is the Kind of a job's Key; jobs are no nouns.
const KindJob model.Kind = "Job"

// Decide says what to do for one object now. It does nothing itself.
func (v *LeaderView) Decide(key Key, now time.Time) Decision {
	decide := rulesOf(key.Kind).decide
	if decide == nil {
		return Decision{}
	}
	return decide(v, key.Name, now)
}
