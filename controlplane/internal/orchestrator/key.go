package orchestrator

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
func (v *View) Decide(key Key, now time.Time) Decision {
	switch key.Kind {
	case model.KindVolume:
		return v.DecideVolume(key.Name, now)
	case model.KindTarget:
		return v.DecideTarget(key.Name, now)
	case model.KindGateway:
		return v.DecideGateway(key.Name, now)
	case model.KindSnapshot:
		return v.DecideSnapshot(key.Name, now)
	case model.KindStoragePool:
		return v.DecidePool(key.Name, now)
	case model.KindHost:
		return v.DecideHost(key.Name, now)
	case KindJob:
		return v.DecideJob(key.Name)
	}
	return Decision{}
}
