package model

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// CanonicalAddress returns the only form of a host:port that is stored, sent and compared. IP addresses are as in RFC 5952, and
// IPv4-mapped IPv6 addresses become IPv4. Names are in lower case without a final dot (RFC 4343, RFC 1034 §3.1). Ports have no
// leading zeros. Text that is no host:port is returned unchanged; Validate refuses it.
func CanonicalAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return address
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), uint16(number)).String()
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(host), "."), strconv.FormatUint(number, 10))
}

// Canonical returns the portal with canonical addresses. Objects that an earlier release stored may have others.
func (p Portal) Canonical() Portal {
	p.Listen, p.Advertised = CanonicalAddress(p.Listen), CanonicalAddress(p.Advertised)
	return p
}

// Addresses returns the addresses that must be unique among gateways, by field and in canonical form: the forwarding address and
// each advertised address.
func (g *Gateway) Addresses() map[string]string {
	all := map[string]string{"spec.forwardingAddress": CanonicalAddress(g.Spec.ForwardingAddress)}
	for i, portal := range g.Spec.Portals {
		all[PortalField(i)+".advertised"] = CanonicalAddress(portal.Advertised)
	}
	return all
}

// sameListener reports whether two listen addresses (host:port) cannot be bound at once: they have the same port, and the same host or
// an unspecified one.
func sameListener(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(CanonicalAddress(a))
	hostB, portB, errB := net.SplitHostPort(CanonicalAddress(b))
	if errA != nil || errB != nil || portA != portB {
		return false
	}
	unspecified := func(host string) bool {
		ip, err := netip.ParseAddr(host)
		return err == nil && ip.IsUnspecified()
	}
	return hostA == hostB || unspecified(hostA) || unspecified(hostB)
}

// PortalField names a portal in violations.
func PortalField(i int) string { return "spec.portals[" + strconv.Itoa(i) + "]" }
