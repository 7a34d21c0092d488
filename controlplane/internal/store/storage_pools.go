package store

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) storagePools() noun[*model.StoragePool] {
	return noun[*model.StoragePool]{
		empty: func() *model.StoragePool { return &model.StoragePool{} },
		claims: func(p *model.StoragePool) []claim {
			// Two pools over the same directory would assign the same space to two volumes.
			if l := p.Spec.Local; l != nil && l.Directory != "" {
				return []claim{{"directory", l.Node + ":" + l.Directory, "spec.local.directory"}}
			} else if l != nil {
				var claims []claim
				for _, device := range l.Devices {
					claims = append(claims, claim{"device", l.Node + ":" + device, "spec.local.devices"})
				}
				return claims
			}
			return nil
		},
		secretsOf: func(p *model.StoragePool) []*model.Secret {
			if p.Spec.RBD == nil {
				return nil
			}
			return []*model.Secret{&p.Spec.RBD.Key}
		},
		creating: func(_ context.Context, _ *tx, p *model.StoragePool) error {
			p.Status = model.StoragePoolStatus{}
			return nil
		},
		updating: func(_ context.Context, _ *tx, from, to *model.StoragePool) error {
			to.Status = from.Status
			return to.ValidateUpdate(from).Err()
		},
	}
}

// KeepPoolSecret sets the key that an update leaves empty to the stored one.
func KeepPoolSecret(from, to *model.StoragePool) {
	if from.Spec.RBD != nil && to.Spec.RBD != nil && to.Spec.RBD.Key.IsZero() {
		to.Spec.RBD.Key = from.Spec.RBD.Key
	}
}
