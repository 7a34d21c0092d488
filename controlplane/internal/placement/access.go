package placement

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/internal/model"
)

// access lists the portals that each host is shown of each target.
func (p *planner) access() []HostAccess {
	pairs := 0
	for i := range p.targets {
		pairs += len(p.targets[i].hosts)
	}
	out := make([]HostAccess, 0, pairs)
	for i := range p.targets {
		t := &p.targets[i]
		for _, h := range t.hosts {
			out = append(out, p.hostAccess(t, &p.hosts[h]))
		}
	}
	slices.SortFunc(out, compareAccess)
	return out
}

func compareAccess(a, b HostAccess) int {
	return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.Target, b.Target))
}

// shown is a portal with its sort keys.
type shown struct {
	PortalRef
	gateway int32
	// tier orders portals: of gateways that serve and stay, then that drain, then that are dead.
	tier int
	turn uint32
}

func (p *planner) hostAccess(t *target, h *host) HostAccess {
	var portals []shown
	for at, g := range t.set {
		portals = append(portals, p.gatewayPortals(t, h, g, at)...)
	}
	slices.SortFunc(portals, func(a, b shown) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(uint32(a.Cost), uint32(b.Cost)),
			cmp.Compare(a.turn, b.turn), strings.Compare(a.Fabric, b.Fabric),
			strings.Compare(a.Address, b.Address))
	})
	access := HostAccess{Host: h.Name, Target: t.Name, Portals: make([]PortalRef, len(portals))}
	for i, portal := range portals {
		access.Portals[i] = portal.PortalRef
		if portal.tier == 0 {
			access.Serving++
		}
	}
	return access
}

// gatewayPortals returns the portals on fabrics to which the host is attached and on which it reaches the gateway. If there are
// none it returns all portals, so that no gateway is missing: there may be a route that the fabrics do not declare.
func (p *planner) gatewayPortals(t *target, h *host, index int32, at int) []shown {
	g := &p.gateways[index]
	base := shown{gateway: index, turn: rotation(h.Name, at, len(t.set))}
	switch {
	case g.Health == Dead:
		base.tier = 2
	case !p.mayStay(t, index):
		base.tier = 1
	}
	var reached, all []shown
	for _, portal := range g.portals {
		entry := base
		entry.PortalRef = PortalRef{
			Gateway: g.Number, Address: portal.Address,
			PortalGroupTag: portal.PortalGroupTag, Fabric: portal.Fabric, Cost: -1,
		}
		all = append(all, entry)
		for _, from := range h.places {
			if from.fabric != portal.place.fabric {
				continue
			}
			d := p.net.graphs[from.fabric].distance(from.at, portal.place.at)
			if d == apart {
				continue
			}
			if from.at != unknown && portal.place.at != unknown {
				entry.Cost = d
			}
			reached = append(reached, entry)
		}
	}
	if len(reached) > 0 {
		return reached
	}
	return all
}

// rotation rotates the order of gateways at equal distance, so that hosts are distributed over them.
func rotation(host string, at, count int) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(host)) // never fails
	return (uint32(at) + hash.Sum32()%uint32(count)) % uint32(count)
}

func (p *planner) reportUnreachable(t *target, single []FailureDomain) {
	for _, domain := range single {
		if domain.Kind == DomainNone {
			p.problems.add(model.KindTarget, t.Name, ReasonUnreachable,
				fmt.Sprintf("%d of its hosts reach no gateway of its path set, as fabrics and health are",
					domain.Hosts),
				fmt.Sprintf("give pool %s usable gateways with portals on those hosts' fabrics, "+
					"or correct the fabrics' links", t.GatewayPool))
		}
	}
}

// Redirect returns the portal to which a login is redirected (status class 1, RFC 7143 §11.13.5) that arrived at a gateway and
// fabric where the target is not shown to the host; false: no redirection. The gateway must not redirect if that initiator name
// and ISID has a session (R9).
//
// A portal of the same gateway is preferred, then the gateway that replaced it, so that the number of paths stays the same.
// Logins to other gateways are distributed by the gateway's number.
func (a *Assignment) Redirect(
	host, target string, gateway uint32, fabric string,
) (to PortalRef, redirected bool) {
	key := HostAccess{Host: host, Target: target}
	at, known := slices.BinarySearchFunc(a.Access, key, compareAccess)
	if !known {
		return PortalRef{}, false
	}
	access := &a.Access[at]
	of := func(number uint32) []PortalRef {
		return slices.DeleteFunc(slices.Clone(access.Portals[:access.Serving]),
			func(r PortalRef) bool { return r.Gateway != number })
	}
	for _, r := range access.Portals {
		if r.Gateway == gateway && r.Fabric == fabric {
			return PortalRef{}, false
		}
	}
	if same := of(gateway); len(same) > 0 {
		return same[0], true
	}
	by := a.replacement(target, gateway)
	if by == 0 {
		by = access.stranger(gateway)
	}
	choice := of(by)
	if len(choice) == 0 {
		return PortalRef{}, false
	}
	for _, r := range choice {
		if r.Fabric == fabric {
			return r, true
		}
	}
	return choice[0], true
}

func (a *Assignment) replacement(target string, gone uint32) uint32 {
	at, known := slices.BinarySearchFunc(a.Targets, target, func(t TargetPaths, name string) int {
		return strings.Compare(t.Target, name)
	})
	if !known {
		return 0
	}
	for _, pair := range a.Targets[at].Replaced {
		if pair.Gone == gone {
			return pair.By
		}
	}
	return 0
}

// stranger selects a serving gateway for logins to a gateway outside the target's path set.
func (h *HostAccess) stranger(gateway uint32) uint32 {
	var numbers []uint32
	for _, r := range h.Portals[:h.Serving] {
		if !slices.Contains(numbers, r.Gateway) {
			numbers = append(numbers, r.Gateway)
		}
	}
	if len(numbers) == 0 {
		return 0
	}
	return numbers[int(gateway)%len(numbers)]
}
