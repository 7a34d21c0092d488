package placement

import "testing"

func TestPortalsOfUnknownPlaceAreShownToEveryHostOfTheirFabric(t *testing.T) {
	c := plainCluster(2, 1, 1)
	c.Hosts = []Host{plainHost("h", 1)}
	for i := range c.Gateways {
		for j := range c.Gateways[i].Portals {
			c.Gateways[i].Portals[j].Switch = ""
		}
	}
	plan := Plan(c)
	if len(plan.Problems) != 0 {
		t.Errorf("problems: %+v", plan.Problems)
	}
	if len(plan.Access) != 1 || len(plan.Access[0].Portals) != 4 {
		t.Errorf("access: %+v, want all 4 portals", plan.Access)
	}
}
