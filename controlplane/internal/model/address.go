package model

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// CanonicalAddress is the one form of a host:port that is stored, sent and compared: an IP address as RFC 5952 writes it, an IPv4
// address in IPv6 as IPv4; a name in lower case without its last dot (RFC 4343, RFC 1034 §3.1); a port without leading
// zeros. What is no host:port stays as it is, for Validate to refuse.
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

// Canonical is a portal with canonical addresses. Objects that an earlier release stored may have others.
func (p Portal) Canonical() Portal {
	p.Listen, p.Advertised = CanonicalAddress(p.Listen), CanonicalAddress(p.Advertised)
	return p
}

// Addresses returns the addresses that must be unique among gateways, in canonical form: the forwarding address and each advertised
// address, by field.
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
