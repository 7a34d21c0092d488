package store

import (
	"context"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) targets() noun[*model.Target] {
	return noun[*model.Target]{
		empty: func() *model.Target { return &model.Target{} },
		claims: func(t *model.Target) []claim {
			claims := []claim{{"iqn", t.Spec.IQN, "spec.iqn"}}
			for i, lun := range t.Spec.Luns {
				// A volume is one LUN of one target: its owner is in that target's path set.
				claims = append(claims, claim{"mapping", lun.Volume, fmt.Sprintf("spec.luns[%d].volume", i)})
			}
			return claims
		},
		references: func(t *model.Target) []reference {
			references := []reference{{model.KindGatewayPool, t.Spec.GatewayPool, "spec.gatewayPool"}}
			for i, lun := range t.Spec.Luns {
				references = append(references,
					reference{model.KindVolume, lun.Volume, fmt.Sprintf("spec.luns[%d].volume", i)})
			}
			for i, host := range t.Spec.Hosts {
				references = append(references, reference{model.KindHost, host, fmt.Sprintf("spec.hosts[%d]", i)})
			}
			return references
		},
		creating: func(ctx context.Context, t *tx, target *model.Target) error {
			target.Status = model.TargetStatus{}
			return s.takeOverNumbers(ctx, t, target)
		},
		updating: func(ctx context.Context, t *tx, from, to *model.Target) error {
			to.Status = from.Status
			now := s.now().UTC()
			uids, err := s.volumeUIDs(ctx, t, to.Renumbered(from))
			if err != nil {
				return err
			}
			if err := to.ValidateUpdate(from, uids, now).Err(); err != nil {
				return err
			}
			to.Quarantine(from, uids, now)
			return nil
		},
		lingers: true,
		removed: s.keepNumbers,
	}
}

// AddPorts assigns a target relative port identifiers on gateways where it has none: one for each portal group tag (R13).
// Existing ones stay, even if their gateway is not in the path set.
func (term *Term) AddPorts(ctx context.Context, name string, wanted []model.TargetPort) (*model.Target, error) {
	s := term.store
	var target *model.Target
	err := retry(ctx, func() error {
		from, err := s.Targets.Get(ctx, name)
		if err != nil {
			return err
		}
		target = from
		missing := from.WithoutPorts(wanted)
		if len(missing) == 0 {
			return nil
		}
		to := *from
		to.Status.Ports = append([]model.TargetPort(nil), from.Status.Ports...)
		target = &to
		t := term.begin()
		first, err := s.assignNumbers(ctx, t, relativePorts, len(missing))
		if err != nil {
			return err
		}
		for i, port := range missing {
			port.RelativePortID = first + uint32(i)
			to.Status.Ports = append(to.Status.Ports, port)
		}
		return s.Targets.replace(ctx, t, from, &to, false)
	})
	return target, err
}
