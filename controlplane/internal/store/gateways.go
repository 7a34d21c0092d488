package store

import (
	"context"
	"fmt"

	"sluice.dev/sluice/controlplane/internal/model"
)

// forwardingField is the field of the forwarding address, which must be unique among gateways.
const forwardingField = "spec.forwardingAddress"

func (s *Store) gateways() noun[*model.Gateway] {
	return noun[*model.Gateway]{
		empty: func() *model.Gateway { return &model.Gateway{} },
		claims: func(g *model.Gateway) []claim {
			claims := []claim{{"forwarding-address", g.Spec.ForwardingAddress, forwardingField}}
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
			if err := s.addressesFree(ctx, g); err != nil {
				return err
			}
			g.Status = model.GatewayStatus{Health: model.GatewayNew}
			number, err := s.assignNumbers(ctx, t, gatewayNumbers, 1)
			if err != nil {
				return err
			}
			g.Status.Number = number
			return s.tagPortals(ctx, t, g)
		},
		updating: func(ctx context.Context, _ *tx, from, to *model.Gateway) error {
			to.Status = from.Status
			if err := s.addressesFree(ctx, to); err != nil {
				return err
			}
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

// RequestDrain records whether all volumes and paths must leave a gateway; the leader carries it out. A dry run stores nothing.
// Errors: NotFoundError, ErrBusy.
func (s *Store) RequestDrain(ctx context.Context, gateway string, wanted, dryRun bool) (*model.Gateway, error) {
	return s.Gateways.modify(ctx, gateway, func(g *model.Gateway) (bool, error) {
		changed := g.Status.Drain != wanted
		g.Status.Drain = wanted
		return changed && !dryRun, nil
	})
}

// NoteAdmission stores a gateway's condition that states whether the last process with its name was admitted. change returns
// false if the gateway has that condition. Errors: NotFoundError, ErrBusy.
func (s *Store) NoteAdmission(ctx context.Context, gateway string, change func(*model.Gateway) (bool, error)) error {
	_, err := s.Gateways.modify(ctx, gateway, change)
	return err
}

// addressesFree refuses an address of another gateway in any form. Claims compare text. They use canonical addresses, except
// those of gateways that an earlier release stored without canonical addresses.
func (s *Store) addressesFree(ctx context.Context, g *model.Gateway) error {
	for token := ""; ; {
		page, err := s.Gateways.List(ctx, ListOptions{PageSize: MaxPageSize, PageToken: token})
		if err != nil {
			return err
		}
		for _, other := range page.Objects {
			if other.Meta.Name == g.Meta.Name || canonical(other) {
				continue // claims detect these
			}
			if err := addressesApart(g, other); err != nil {
				return err
			}
		}
		if token = page.Next; token == "" {
			return nil
		}
	}
}

func canonical(g *model.Gateway) bool {
	for _, portal := range g.Spec.Portals {
		if portal != portal.Canonical() {
			return false
		}
	}
	return g.Spec.ForwardingAddress == model.CanonicalAddress(g.Spec.ForwardingAddress)
}

// addressesApart refuses a gateway that has the same address as another one for the same use.
func addressesApart(g, other *model.Gateway) error {
	for field, address := range g.Addresses() {
		for otherField, taken := range other.Addresses() {
			if address == taken && (field == forwardingField) == (otherField == forwardingField) {
				return &ExistsError{model.KindGateway, field, address, other.Meta.Name}
			}
		}
	}
	return nil
}

// tagPortals assigns a portal group tag to each fabric that has none: one portal group for each gateway and fabric, so that a
// reused ISID over a second fabric is a second nexus.
func (s *Store) tagPortals(ctx context.Context, t *tx, g *model.Gateway) error {
	fabrics := untagged(g)
	first, err := s.assignNumbers(ctx, t, portalGroupNumbers, len(fabrics))
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
