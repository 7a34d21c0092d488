package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// VolumeConditions returns the conditions of a volume, also while an action on its ownership comes first.
func (v *LeaderView) VolumeConditions(volume *model.Volume, now time.Time) []model.Condition {
	return v.volumeConditions(volume, progress{}, now, &Decision{})
}
