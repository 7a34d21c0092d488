package placement

import (
	"fmt"
	"slices"
	"testing"
)

func TestAHostIsShownTheNearestPortalFirstOnEveryFabricItSitsOn(t *testing.T) {
	c := plainCluster(6, 1, 1)
	c.Targets[0].Paths = 6
	c.Hosts = []Host{plainHost("h", 4)}
	access := Plan(c).Access[0]
	if len(access.Portals) != 12 || access.Serving != 12 {
		t.Fatalf("%d portals, %d serving; want 12", len(access.Portals), access.Serving)
	}
	for i, r := range access.Portals[:2] {
		if r.Gateway != 5 || r.Cost != 0 {
			t.Errorf("portal %d is %+v, want gateway 5 at the host's switch", i, r)
		}
	}
	if access.Portals[0].Fabric == access.Portals[1].Fabric {
		t.Error("the nearest gateway is shown on one fabric only")
	}
	for i := 1; i < len(access.Portals); i++ {
		if access.Portals[i].Cost < access.Portals[i-1].Cost {
			t.Errorf("portal %d is nearer than the one before", i)
		}
	}
}

func TestPortalsOnOtherFabricsAreNotShown(t *testing.T) {
	c := plainCluster(3, 1, 1)
	c.Hosts = []Host{{Name: "h", Switches: []Attachment{{"b", "s-0"}}}}
	portals := Plan(c).Access[0].Portals
	if len(portals) == 0 {
		t.Error("a host on fabric b is shown no portal")
	}
	for _, r := range portals {
		if r.Fabric != "b" {
			t.Errorf("a host on fabric b is shown %+v", r)
		}
	}
}

func TestHostsOfUnknownPlaceAreShownAllPortalsInAnOrderThatSpreads(t *testing.T) {
	c := plainCluster(4, 1, 1)
	c.Targets[0].Paths, c.Hosts, c.Targets[0].Hosts = 4, nil, nil
	for i := range 400 {
		c.Hosts = append(c.Hosts, Host{Name: fmt.Sprintf("h-%d", i)})
		c.Targets[0].Hosts = append(c.Targets[0].Hosts, c.Hosts[i].Name)
	}
	first := map[uint32]int{}
	for _, access := range Plan(c).Access {
		if len(access.Portals) != 8 {
			t.Fatalf("%s is shown %d portals, want all 8", access.Host, len(access.Portals))
		}
		first[access.Portals[0].Gateway]++
	}
	for g := range uint32(4) {
		if first[g+1] < 70 || first[g+1] > 130 {
			t.Errorf("gateway %d is first for %d of 400 hosts", g+1, first[g+1])
		}
	}
}

func TestNoHostIsShownFewerGatewaysThanPromised(t *testing.T) {
	for seed := range uint64(400) {
		c := randomCluster(seed, tiny)
		a := Plan(c)
		for _, access := range a.Access {
			at := slices.IndexFunc(a.Targets, func(p TargetPaths) bool { return p.Target == access.Target })
			var shown []uint32
			for _, r := range access.Portals {
				if !slices.Contains(shown, r.Gateway) {
					shown = append(shown, r.Gateway)
				}
			}
			slices.Sort(shown)
			want := slices.DeleteFunc(slices.Clone(a.Targets[at].Gateways), func(g uint32) bool {
				return len(c.Gateways[g-1].Portals) == 0
			})
			if !slices.Equal(shown, want) {
				t.Fatalf("seed %d: %s is shown %v of path set %v", seed, access.Host, shown, want)
			}
			usable := 0
			for _, g := range c.Gateways {
				if g.Health == Usable && g.Pool == c.Targets[at].GatewayPool && len(g.Portals) > 0 {
					usable++
				}
			}
			if promised := min(usable, int(c.Targets[at].Paths)); len(want) < promised {
				t.Fatalf("seed %d: %d gateways, %d promised", seed, len(want), promised)
			}
		}
	}
}

func TestALoginToAGatewayThatLeftGoesToTheOneThatTookItsPlace(t *testing.T) {
	c := plainCluster(6, 1, 1)
	c.Targets[0].PathSet = []uint32{1, 2}
	a := Plan(withHealth(withHealth(c, 1, Draining), 2, Draining))
	var went []uint32
	for _, gone := range []uint32{1, 2} {
		to, redirected := a.Redirect("h", "t-000", gone, "b")
		if !redirected || to.Fabric != "b" || !slices.Contains(a.Targets[0].Gateways, to.Gateway) {
			t.Errorf("a login to %d on fabric b goes to %+v, %v", gone, to, redirected)
		}
		went = append(went, to.Gateway)
	}
	if went[0] == went[1] {
		t.Error("two paths were sent to one gateway: fewer than promised")
	}
}

func TestALoginToAGatewayOfThePathSetIsNotRedirected(t *testing.T) {
	c := plainCluster(6, 1, 1)
	a := Plan(c)
	for g := uint32(1); g <= 6; g++ {
		to, redirected := a.Redirect("h", "t-000", g, "a")
		if inside := slices.Contains(a.Targets[0].Gateways, g); redirected == inside {
			t.Errorf("a login to %d, of the path set: %v, goes to %+v", g, inside, to)
		}
	}
}

func TestALoginToAHiddenPortalStaysOnItsGateway(t *testing.T) {
	c := plainCluster(6, 1, 1)
	c.Hosts = []Host{{Name: "h", Switches: []Attachment{{"b", "s-0"}}}}
	a := Plan(c)
	for _, g := range a.Targets[0].Gateways {
		to, redirected := a.Redirect("h", "t-000", g, "a")
		if !redirected || to.Gateway != g || to.Fabric != "b" {
			t.Errorf("a login to gateway %d on fabric a goes to %+v, %v", g, to, redirected)
		}
	}
}

func TestNoLoginIsRedirectedToAGatewayThatDoesNotServe(t *testing.T) {
	redirections := 0
	for seed := range uint64(400) {
		c := randomCluster(seed, tiny)
		a := Plan(c)
		for _, access := range a.Access {
			for _, g := range c.Gateways {
				for _, fabric := range []string{"fabric-0", "fabric-1"} {
					to, redirected := a.Redirect(access.Host, access.Target, g.Number, fabric)
					if !redirected {
						continue
					}
					redirections++
					if h := c.Gateways[to.Gateway-1].Health; h == Dead || h == Draining {
						t.Fatalf("seed %d: a login to %d is sent to %+v, whose health is %d", seed, g.Number, to, h)
					}
				}
			}
		}
	}
	if redirections == 0 {
		t.Error("no login was redirected")
	}
}

func TestHostsAndTargetsThatDontMeetAreRedirectedNowhere(t *testing.T) {
	a := Plan(plainCluster(3, 1, 1))
	if to, redirected := a.Redirect("stranger", "t-000", 1, "a"); redirected {
		t.Errorf("a stranger is sent to %+v", to)
	}
}
