package store

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) snapshots() noun[*model.Snapshot] {
	return noun[*model.Snapshot]{
		empty: func() *model.Snapshot { return &model.Snapshot{} },
		references: func(x *model.Snapshot) []reference {
			return []reference{{model.KindVolume, x.Spec.Volume, "spec.volume"}}
		},
		creating: func(_ context.Context, _ *tx, x *model.Snapshot) error {
			x.Status = model.SnapshotStatus{}
			return nil
		},
		updating: func(from, to *model.Snapshot) error {
			to.Status = from.Status
			return to.ValidateUpdate(from).Err()
		},
		lingers: true,
		removed: func(t *tx, x *model.Snapshot) { s.withoutJobs(t, model.KindSnapshot, &x.Meta) },
	}
}
