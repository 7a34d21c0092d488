package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// port is a TCP port that a service of the node opens, and what for.
type port struct {
	at  netip.AddrPort
	use string
}

// ports are all TCP ports of the node.
func (p *Plan) ports() []port {
	all := []port{{p.controlPlane(), "control plane"}, {netip.AddrPortFrom(loopback, controlMetrics), "metrics of the control plane"},
		{netip.AddrPortFrom(p.address(), peerPort), "members of etcd"}, {netip.AddrPortFrom(p.address(), joinPort), "servers that join"}}
	for _, one := range p.gateways() {
		if len(p.Fabrics) == 0 { // a server that joins does not know them yet
			all = append(all, port{netip.AddrPortFrom(p.address(), one.portal), "portal of " + one.name})
		}
		for _, fabric := range p.fabricNames() {
			all = append(all, port{one.portals[fabric], "portal of " + one.name + " on fabric " + fabric})
		}
		all = append(all, port{one.forwarding, "forwarding of " + one.name}, port{one.metrics, "metrics of " + one.name})
	}
	return all
}

// checkPorts opens each port. Ports of the sample's gateway, which the set-up stops, and of services of an earlier run are no problem.
func (p *Preflight) checkPorts(context.Context) (string, []Problem) {
	if p.Plan.Address == "" {
		return "", nil // the check of the address has reported that
	}
	expected := []string{sampleUnit}
	if p.Earlier {
		expected = append(expected, controlPlaneUnit)
		for _, one := range p.Plan.gateways() {
			expected = append(expected, one.unit())
		}
	}
	var problems []Problem
	var free []string
	for _, wanted := range p.Plan.ports() {
		if err := p.System.Listen(wanted.at); errors.Is(err, unix.EADDRINUSE) {
			by := p.System.listenerAt(wanted.at.Port())
			if !slices.Contains(expected, by.unit) {
				problems = append(problems, one(fmt.Sprintf("stop %s, or configure another port for it", by),
					"port %s (%s) is in use by %s", wanted.at, wanted.use, by)...)
				continue
			}
		} else if err != nil {
			problems = append(problems, one("correct the network of this server", "port %s (%s) cannot be opened: %v", wanted.at, wanted.use, err)...)
			continue
		}
		free = append(free, fmt.Sprint(wanted.at.Port()))
	}
	if len(problems) > 0 {
		return "", problems
	}
	slices.Sort(free)
	return strings.Join(slices.Compact(free), ", ") + " can be used", nil
}
