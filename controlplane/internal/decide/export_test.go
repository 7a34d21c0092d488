package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// VolumeConditions returns the conditions of a volume, also while an action on its ownership comes first.
func (v *LeaderView) VolumeConditions(volume *model.Volume, now time.Time) []model.Condition {
	return v.volumeConditions(volume, progress{}, now, &Decision{})
}

// Fail records a failure of a volume at a gateway.
func (v *LeaderView) Fail(volume string, gateway uint32, now time.Time) { v.fail(volume, gateway, now) }
