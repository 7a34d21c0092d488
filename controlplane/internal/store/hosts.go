package store

import (
	"context"
	"fmt"
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) hosts() noun[*model.Host] {
	return noun[*model.Host]{
		empty: func() *model.Host { return &model.Host{} },
		claims: func(h *model.Host) []claim {
			var claims []claim
			for i, name := range h.Spec.Initiators {
				claims = append(claims, claim{"initiator", name, fmt.Sprintf("spec.initiators[%d]", i)})
			}
			return claims
		},
		references: func(h *model.Host) []reference {
			var references []reference
			for i, place := range h.Spec.Switches {
				fabric, _, _ := strings.Cut(place, "/")
				references = append(references, reference{model.KindFabric, fabric, fmt.Sprintf("spec.switches[%d]", i)})
			}
			return references
		},
		secretsOf: func(h *model.Host) []*model.Secret {
			var secrets []*model.Secret
			for _, chap := range []*model.ChapCredentials{h.Spec.Chap, h.Spec.MutualChap} {
				if chap != nil {
					secrets = append(secrets, &chap.Password)
				}
			}
			return secrets
		},
		creating: func(_ context.Context, _ *tx, h *model.Host) error {
			h.Status = model.HostStatus{}
			return nil
		},
		updating: func(_ context.Context, _ *tx, from, to *model.Host) error {
			to.Status = from.Status
			return nil
		},
	}
}

// KeepHostSecrets sets the passwords that an update leaves empty to the stored ones. It is called before Update, which validates.
func KeepHostSecrets(from, to *model.Host) {
	keep := func(from, to *model.ChapCredentials) {
		if from != nil && to != nil && to.Password.IsZero() {
			to.Password = from.Password
		}
	}
	keep(from.Spec.Chap, to.Spec.Chap)
	keep(from.Spec.MutualChap, to.Spec.MutualChap)
}
