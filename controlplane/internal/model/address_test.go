package model

import "testing"

func TestAnAddressHasOneCanonicalForm(t *testing.T) {
	for address, want := range map[string]string{
		"[0:0:0:0:0:0:0:1]:3260": "[::1]:3260", "[::1]:03260": "[::1]:3260", "[2001:DB8::A]:1": "[2001:db8::a]:1",
		"192.0.2.1:024173": "192.0.2.1:24173", "[::ffff:192.0.2.1]:3260": "192.0.2.1:3260",
		"Portal.Example.ORG.:3260": "portal.example.org:3260", "[fe80::1%eth0]:3260": "[fe80::1%eth0]:3260",
		"192.0.2.1": "192.0.2.1", "192.0.2.1:x": "192.0.2.1:x", "192.0.2.1:70000": "192.0.2.1:70000", "": "",
	} {
		if got := CanonicalAddress(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
		if again := CanonicalAddress(want); again != want {
			t.Errorf("%q is not canonical: %q", want, again)
		}
	}
}

func TestAGatewayListensOnEachAddressOnce(t *testing.T) {
	for _, c := range []struct{ forwarding, red, blue, wants string }{
		{"192.0.2.9:3261", "[::1]:3260", "[0:0::1]:03260", "spec.portals[1].listen"},
		{"192.0.2.9:3261", "192.0.2.8:3260", "192.0.2.9:3260", ""},
		{"192.0.2.9:3261", "192.0.2.9:3261", "192.0.2.8:3260", "spec.portals[0].listen"},
		{"192.0.2.9:3261", "192.0.2.8:3260", "[::ffff:192.0.2.9]:3261", "spec.portals[1].listen"},
		{"192.0.2.9:3261", "0.0.0.0:3260", "192.0.2.8:3260", "spec.portals[1].listen"},
		{"192.0.2.9:3261", "[::]:3261", "192.0.2.8:3260", "spec.portals[0].listen"},
		{"192.0.2.9:3261", "0.0.0.0:3260", "0.0.0.0:3262", ""},
	} {
		g := &Gateway{Meta: Meta{Name: "gw-1"}, Spec: GatewaySpec{GatewayPool: "default", Node: "n", ForwardingAddress: c.forwarding,
			Portals: []Portal{{Listen: c.red, Advertised: "192.0.2.1:3260", Fabric: "red"},
				{Listen: c.blue, Advertised: "192.0.2.2:3260", Fabric: "blue"}}}}
		g.SetDefaults()
		g.Normalize()
		found := g.Validate()
		if c.wants == "" && len(found) > 0 || c.wants != "" && (len(found) != 1 || found[0].Field != c.wants) {
			t.Errorf("%+v: refused: %v", c, found)
		}
	}
}
