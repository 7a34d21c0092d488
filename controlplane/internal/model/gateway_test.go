package model

import (
	"slices"
	"testing"
)

func TestAdvertisedAddressesMustNotBeWildcards(t *testing.T) {
	for _, c := range []struct {
		listen, advertised, forwarding string
		wants                          []string
	}{
		{"0.0.0.0:3260", "192.0.2.1:3260", "192.0.2.1:3261", nil},
		{"[::]:3260", "[2001:db8::1]:3260", "gw-1.example:3261", nil},
		{"0.0.0.0:3260", "", "192.0.2.1:3261", []string{"spec.portals[0].advertised"}}, // the default of advertised is listen
		{"[::]:3260", "[::]:3260", "[::]:3261", []string{"spec.forwardingAddress", "spec.portals[0].advertised"}},
		{"192.0.2.1:3260", "192.0.2.1:3260", "0.0.0.0:3261", []string{"spec.forwardingAddress"}},
	} {
		g := &Gateway{Meta: Meta{Name: "gw-1"}, Spec: GatewaySpec{GatewayPool: "default", Node: "n", ForwardingAddress: c.forwarding,
			Portals: []Portal{{Listen: c.listen, Advertised: c.advertised, Fabric: "red"}}}}
		g.SetDefaults()
		g.Normalize()
		var fields []string
		for _, violation := range g.Validate() {
			fields = append(fields, violation.Field)
		}
		if !slices.Equal(fields, c.wants) {
			t.Errorf("%+v: %v", c, g.Validate())
		}
	}
}
