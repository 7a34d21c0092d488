package store

import (
	"context"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) gateways() noun[*model.Gateway] {
	return noun[*model.Gateway]{
		empty: func() *model.Gateway { return &model.Gateway{} },
		claims: func(g *model.Gateway) []claim {
			claims := []claim{{"forwarding-address", g.Spec.ForwardingAddress, "spec.forwardingAddress"}}
			for i, portal := range g.Spec.Portals {
				claims = append(claims,
					claim{"portal", portal.Advertised, fmt.Sprintf("spec.portals[%d].advertised", i)})
			}
			return claims
		},
		references: func(g *model.Gateway) []reference {
			references := []reference{{model.KindGatewayPool, g.Spec.GatewayPool, "spec.gatewayPool"}}
			for i, portal := range g.Spec.Portals {
				references = append(references,
					reference{model.KindFabric, portal.Fabric, fmt.Sprintf("spec.portals[%d].fabric", i)})
			}
			return references
		},
		creating: func(ctx context.Context, t *tx, g *model.Gateway) error {
			g.Status = model.GatewayStatus{Health: model.GatewayNew}
			number, err := s.take(ctx, t, gatewayNumbers, 1)
			if err != nil {
				return err
			}
			g.Status.Number = number
			return s.tagPortals(ctx, t, g)
		},
		updating: func(_ context.Context, _ *tx, from, to *model.Gateway) error {
			to.Status = from.Status
			if err := to.ValidateUpdate(from).Err(); err != nil {
				return err
			}
			if len(untagged(to)) > 0 {
				return model.Precondition("spec.portals",
					"adds a fabric: a gateway's fabrics are given when it is made; make a new gateway")
			}
			return nil
		},
		lingers: true,
		removed: func(_ context.Context, t *tx, g *model.Gateway) error {
			t.delete(s.connectionKey(g.Meta.Name))
			t.delete(s.incarnationKey(g.Meta.Name))
			return nil
		},
	}
}

// tagPortals gives a portal group tag to each fabric that has none yet: one portal group for each gateway and fabric, so
// that a reused ISID over a second fabric is a second nexus.
func (s *Store) tagPortals(ctx context.Context, t *tx, g *model.Gateway) error {
	fabrics := untagged(g)
	first, err := s.take(ctx, t, portalGroupNumbers, len(fabrics))
	if err != nil {
		return err
	}
	tags := map[string]uint32{}
	for fabric, tag := range g.Status.PortalGroupTags {
		tags[fabric] = tag
	}
	for i, fabric := range fabrics {
		tags[fabric] = first + uint32(i)
	}
	g.Status.PortalGroupTags = tags
	return nil
}

func untagged(g *model.Gateway) []string {
	var fabrics []string
	seen := map[string]bool{}
	for _, portal := range g.Spec.Portals {
		if _, tagged := g.Status.PortalGroupTags[portal.Fabric]; !tagged && !seen[portal.Fabric] {
			fabrics = append(fabrics, portal.Fabric)
		}
		seen[portal.Fabric] = true
	}
	return fabrics
}
