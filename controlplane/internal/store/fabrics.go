package store

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) fabrics() noun[*model.Fabric] {
	return noun[*model.Fabric]{
		empty: func() *model.Fabric { return &model.Fabric{} },
		creating: func(_ context.Context, _ *tx, f *model.Fabric) error {
			f.Status = model.FabricStatus{}
			return nil
		},
		updating: func(_ context.Context, _ *tx, from, to *model.Fabric) error {
			to.Status = from.Status
			return nil
		},
	}
}
