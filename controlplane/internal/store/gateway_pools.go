package store

import (
	"context"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) gatewayPools() noun[*model.GatewayPool] {
	return noun[*model.GatewayPool]{
		empty: func() *model.GatewayPool { return &model.GatewayPool{} },
		references: func(p *model.GatewayPool) []reference {
			var references []reference
			for i, fabric := range p.Spec.Fabrics {
				references = append(references, reference{model.KindFabric, fabric, fmt.Sprintf("spec.fabrics[%d]", i)})
			}
			return references
		},
		creating: func(_ context.Context, _ *tx, p *model.GatewayPool) error {
			p.Status = model.GatewayPoolStatus{}
			return nil
		},
		updating: func(_ context.Context, _ *tx, from, to *model.GatewayPool) error {
			to.Status = from.Status
			return nil
		},
	}
}
