package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// plant is a cluster on three fabrics at once, of one, two and three switches in a row, with a host at the same place as each
// gateway.
type plant struct {
	*harness.Bench
	*cluster.Cluster
	// numbers of the gateways in the control plane.
	numbers []uint32
	// lunOf has, for each gateway, the LUN of the cluster's own target that it owns.
	lunOf []int
}

// path is the destination of a host.
type path struct {
	portal, target, initiator string
	lun                       int
	hops                      int
	// owner: the gateway of the portal owns the volume, so nothing is forwarded.
	owner bool
}

func hostNode(i int) string           { return fmt.Sprintf("h%d", i+1) }
func own(fabric string, i int) string { return fmt.Sprintf("%s-%d", fabric, i+1) }
func iqn(name string) string          { return "iqn.2026-11.dev.sluice:" + name }

// switchesOf returns the number of a fabric's switches.
func switchesOf(fabric string) int { return 1 + slices.Index(fabrics, fabric) }

// switchOf returns the switch of host or gateway number i: switches are assigned in turn.
func switchOf(fabric string, i int) int { return i % switchesOf(fabric) }

func switchLetter(at int) string { return string(rune('a' + at)) }

func bridge(fabric string, at int) string {
	if at == 0 {
		return "br-" + fabric // made by package netns
	}
	return fabric + "-" + switchLetter(at)
}

func hopsBetween(fabric string, a, b int) int {
	return max(switchOf(fabric, a), switchOf(fabric, b)) - min(switchOf(fabric, a), switchOf(fabric, b))
}

func (p *plant) prepare(ctx context.Context) error {
	if err := p.wire(); err != nil {
		return err
	}
	if err := p.WaitReady(ctx); err != nil {
		return err
	}
	for i := range hosts {
		number, err := p.Number(ctx, i)
		if err != nil {
			return err
		}
		p.numbers = append(p.numbers, number)
	}
	file := filepath.Join(p.Bench.Directory, "switches.yaml")
	if err := os.WriteFile(file, []byte(p.objects()), 0o600); err != nil {
		return err
	}
	if _, err := p.Control(ctx, "apply", "-f", file); err != nil {
		return err
	}
	for _, fabric := range fabrics {
		for i := range hosts {
			err := netns.Until(ctx, func() error { // until the gateway that is shown serves it
				_, err := p.shown(ctx, fabric, i)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return p.findOwnLUNs(ctx)
}

// findOwnLUNs finds a LUN of the cluster's own target for each gateway. The control plane normally gives each gateway one; if not,
// a volume is moved.
func (p *plant) findOwnLUNs(ctx context.Context) error {
	p.lunOf = slices.Repeat([]int{-1}, hosts)
	var spare []int
	for lun := range hosts {
		owner, err := p.Owner(ctx, lun)
		if err != nil {
			return err
		}
		if p.lunOf[owner] < 0 {
			p.lunOf[owner] = lun
		} else {
			spare = append(spare, lun)
		}
	}
	for gateway, lun := range p.lunOf {
		if lun >= 0 {
			continue
		}
		p.lunOf[gateway], spare = spare[0], spare[1:]
		if err := p.Bring(ctx, p.lunOf[gateway], gateway); err != nil {
			return err
		}
	}
	return nil
}

// wire makes the other switches, moves the gateways' links to them, adds the hosts, and shapes every link.
func (p *plant) wire() error {
	for on, fabric := range fabrics {
		for at := 1; at < switchesOf(fabric); at++ {
			if err := harness.AddBridge(bridge(fabric, at)); err != nil {
				return err
			}
			if err := harness.Join(bridge(fabric, at-1), bridge(fabric, at), linkRate); err != nil {
				return err
			}
		}
		for i := range hosts {
			name, at := cluster.GatewayName(i), bridge(fabric, switchOf(fabric, i))
			if err := harness.Replug(name, fabric, at); err != nil {
				return err
			}
			if err := harness.ShapeBoth(name, fabric, portRate); err != nil {
				return err
			}
			if on == 0 {
				if err := harness.AddNode(hostNode(i)); err != nil {
					return err
				}
			}
			if err := harness.Plug(hostNode(i), fabric, at, fmt.Sprintf("10.%d.0.%d", 1+on, 100+i), portRate); err != nil {
				return err
			}
		}
	}
	return nil
}

// objects describes the wiring for the control plane: switches and links, and the places of gateways and hosts. It also creates a
// volume and a target for each host, which two of the gateways export.
func (p *plant) objects() string {
	var text strings.Builder
	object := func(kind, name, spec string) {
		fmt.Fprintf(&text, "---\napiVersion: sluice.dev/v1\nkind: %s\nmeta: {name: %s}\nspec: {%s}\n", kind, name, spec)
	}
	for _, fabric := range fabrics {
		var switches, links []string
		for at := range switchesOf(fabric) {
			switches = append(switches, switchLetter(at))
			if at > 0 {
				links = append(links, fmt.Sprintf("{a: %s, b: %s}", switchLetter(at-1), switchLetter(at)))
			}
		}
		object("Fabric", fabric, fmt.Sprintf("switches: [%s], links: [%s]", strings.Join(switches, ", "), strings.Join(links, ", ")))
	}
	for i := range hosts {
		var portals []string
		for on, listen := range p.Portals(i) {
			portals = append(portals, fmt.Sprintf("{fabric: %s, listen: %q, switch: %s}", fabrics[on], listen,
				switchLetter(switchOf(fabrics[on], i))))
		}
		object("Gateway", cluster.GatewayName(i), fmt.Sprintf("gatewayPool: default, node: node-1, portals: [%s], forwardingAddress: \"%s:3261\"",
			strings.Join(portals, ", "), p.Network.Address(cluster.GatewayName(i), cluster.Internal)))
	}
	for _, fabric := range fabrics {
		for i := range hosts {
			name := own(fabric, i)
			object("Volume", name, fmt.Sprintf("pool: %s, sizeBytes: %d", cluster.PoolName, span))
			object("Host", name, fmt.Sprintf("initiators: [%q], allowUnauthenticated: true, switches: [%s/%s]", iqn("host-"+name), fabric,
				switchLetter(switchOf(fabric, i))))
			object("Target", name, fmt.Sprintf("iqn: %q, gatewayPool: default, paths: 2, luns: [{id: 0, volume: %s}], hosts: [%s]",
				iqn(name), name, name))
		}
	}
	return text.String()
}

// portals returns the portals of the hosts on a fabric. In the ways other than the shown portal, each host uses the LUN of the
// cluster's own target that the selected gateway owns. Nothing is moved during a run, because rebalancing would then move other
// volumes.
func (p *plant) portals(ctx context.Context, fabric, way string, order []int) ([]path, error) {
	if way == farthest {
		order = opposite(fabric)
	}
	var all []path
	for i := range hosts {
		if way == nearest {
			at, err := p.shown(ctx, fabric, i)
			if err != nil {
				return nil, err
			}
			all = append(all, at)
			continue
		}
		gateway := order[i]
		all = append(all, path{portal: p.Portals(gateway)[slices.Index(fabrics, fabric)], target: cluster.Target, lun: p.lunOf[gateway], owner: true,
			initiator: fmt.Sprintf("%s%d", cluster.Initiator, i+1), hops: hopsBetween(fabric, i, gateway)})
	}
	return all, nil
}

// opposite assigns each host a gateway at the other end of the fabric, and no gateway to two hosts; hosts in the middle are
// assigned last.
func opposite(fabric string) []int {
	last := switchesOf(fabric) - 1
	order, free := make([]int, hosts), make([]bool, hosts)
	for i := range free {
		free[i] = true
	}
	for distance := last; distance >= 0; distance-- {
		for i := range order {
			if max(switchOf(fabric, i), last-switchOf(fabric, i)) != distance {
				continue
			}
			best := -1
			for g := range free {
				if free[g] && (best < 0 || hopsBetween(fabric, i, g) > hopsBetween(fabric, i, best)) {
					best = g
				}
			}
			order[i], free[best] = best, false
		}
	}
	return order
}

// shown returns the destination of a host that knows only what SendTargets shows of its own target. A gateway shows the targets
// that it exports, so the host asks one after the other, the one at the other end first.
func (p *plant) shown(ctx context.Context, fabric string, i int) (path, error) {
	name, on := own(fabric, i), slices.Index(fabrics, fabric)
	at := path{target: iqn(name), initiator: iqn("host-" + name)}
	for k := range hosts {
		// The root namespace is at the first switch of each fabric. It asks on behalf of the host.
		asked := p.Portals((2*hosts - 1 - i - k) % hosts)[on]
		found, err := initiator.Discover(ctx, initiator.Options{Portal: asked, Initiator: at.initiator})
		if err != nil {
			return path{}, err
		}
		which := slices.IndexFunc(found, func(s initiator.Shown) bool { return s.Target == at.target })
		if which < 0 || len(found[which].Portals) == 0 {
			continue
		}
		owner, err := p.ownerOf(ctx, name)
		if err != nil {
			return path{}, err
		}
		return p.optimized(at, found[which].Portals, fabric, i, owner)
	}
	return path{}, fmt.Errorf("no gateway shows target %s to its host", name)
}

// optimized returns the first shown portal of the gateway that owns the volume, as reported by ALUA (active/optimized); else the
// first one.
func (p *plant) optimized(at path, portals []string, fabric string, i int, owner uint32) (path, error) {
	on := slices.Index(fabrics, fabric)
	for n, shown := range portals {
		portal, _, _ := strings.Cut(shown, ",")
		g := slices.IndexFunc(p.Gateways, func(process *netns.Process) bool {
			return p.Portals(slices.Index(p.Gateways, process))[on] == portal
		})
		if g < 0 {
			return path{}, fmt.Errorf("%s shows %s, which is no portal on fabric %s", at.target, portal, fabric)
		}
		if at.owner = p.numbers[g] == owner; n == 0 || at.owner {
			at.portal, at.hops = portal, hopsBetween(fabric, i, g)
		}
		if at.owner {
			break
		}
	}
	return at, nil
}

// ownerOf returns the owner of a volume, once it has one: volumes may just have been rebalanced.
func (p *plant) ownerOf(ctx context.Context, volume string) (owner uint32, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err = netns.Until(ctx, func() error {
		text, err := p.Control(ctx, "volume", "get", volume, "-o", "json")
		if err == nil {
			owner, err = ownerIn(text, volume)
		}
		return err
	})
	return owner, err
}

func ownerIn(text []byte, volume string) (uint32, error) {
	var got struct {
		Status struct {
			Ownership    string `json:"ownership"`
			OwnerGateway uint32 `json:"ownerGateway"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return 0, err
	}
	if got.Status.Ownership != "OWNERSHIP_STATE_OWNED" {
		return 0, fmt.Errorf("%s is %s", volume, got.Status.Ownership)
	}
	return got.Status.OwnerGateway, nil
}
