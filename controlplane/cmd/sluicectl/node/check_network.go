package node

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func (p *Preflight) checkName(ctx context.Context) (string, []Problem) {
	name := p.Options.Name
	if name == "" && p.Earlier {
		name = p.Plan.Name
	}
	if name == "" {
		var err error
		if name, err = p.System.HostName(); err != nil {
			return "", one("give the name of the node by --name", "the host name cannot be read: %v", err)
		}
		name, _, _ = strings.Cut(name, ".")
	}
	if wrong := wrongName(name); wrong != "" {
		return "", one("choose another name by --name, or change the host name: hostnamectl set-hostname NAME",
			"%q cannot be the name of a node: %s", name, wrong)
	}
	p.Plan.Name = name
	if _, err := p.System.Resolve(ctx, name); err != nil {
		return "", []Problem{{What: fmt.Sprintf("the name %s has no address: %v", name, err), Warning: true,
			Remedy: "add the server to your DNS or to /etc/hosts. Nodes reach each other by address, people by name"}}
	}
	return name, nil
}

func (p *Preflight) checkAddress(context.Context) (string, []Problem) {
	present, err := p.System.Addresses()
	if err != nil {
		return "", one("see ip address", "the addresses of this server cannot be read: %v", err)
	}
	var usable []string
	for _, prefix := range present {
		p.addresses = append(p.addresses, prefix.Addr().String())
		if !prefix.Addr().IsLoopback() {
			usable = append(usable, prefix.Addr().String())
		}
	}
	text := p.Options.Address
	if text == "" && p.Earlier {
		text = p.Plan.Address
	}
	switch {
	case text == "" && len(usable) == 0:
		return "", one("configure the network, or give --address 127.0.0.1 for a trial that only this server can use",
			"this server has loopback addresses only")
	case text == "" && len(usable) > 1:
		return "", one("choose the one on the cluster network: --address "+usable[0],
			"this server has several addresses: %s", strings.Join(usable, ", "))
	case text == "":
		text = usable[0]
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return "", one("give an IPv4 or IPv6 address without a zone, for example --address 192.0.2.1", "--address %s is not such an address", text)
	}
	for _, prefix := range present {
		if prefix.Addr() == address.Unmap() {
			p.Plan.Address = prefix.Addr().String()
			return p.Plan.Address, nil
		}
	}
	return "", one("give an address of this server, or configure it first: ip address add", "no interface has the address %s; they have %s",
		text, strings.Join(p.addresses, ", "))
}

// subnetOf returns the subnet of an address with the length of its prefix.
func subnetOf(cidr string) string {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	return prefix.Masked().String()
}

func (p *Preflight) checkFabrics(context.Context) (string, []Problem) {
	if p.Joining || p.Earlier {
		return cmp.Or(p.fabricText(), "those of the system, by their subnets"), nil
	}
	present, err := p.System.Addresses()
	if err != nil || p.Plan.Address == "" {
		return "", nil // the check of the address has reported that
	}
	if len(p.Options.Fabrics) == 0 {
		for _, prefix := range present {
			if prefix.Addr() == p.Plan.address() {
				p.Plan.Fabrics[DefaultFabric] = prefix.String()
			}
		}
		return p.fabricText(), nil
	}
	var problems []Problem
	for _, text := range p.Options.Fabrics {
		name, cidr, _ := strings.Cut(text, "=")
		prefix, err := netip.ParsePrefix(cidr)
		switch {
		case err != nil || len(validation.IsDNS1123Subdomain(name)) > 0:
			problems = append(problems, one("write NAME=CIDR, for example --fabric red=192.0.2.0/24", "--fabric %s is not a name with a subnet", text)...)
		case p.Plan.Fabrics[name] != "":
			problems = append(problems, one("give each fabric another name", "--fabric names %s twice", name)...)
		default:
			problems = append(problems, p.placeOnFabric(name, prefix, present)...)
		}
	}
	return p.fabricText(), problems
}

// placeOnFabric chooses the address of this server on a fabric. An administrator chooses among several by writing it in the CIDR.
func (p *Preflight) placeOnFabric(name string, wanted netip.Prefix, present []netip.Prefix) []Problem {
	var inside []netip.Addr
	for _, prefix := range present {
		if wanted.Masked().Contains(prefix.Addr()) {
			inside = append(inside, prefix.Addr())
		}
	}
	var chosen []netip.Addr
	for _, address := range inside {
		if address == wanted.Addr() {
			chosen = []netip.Addr{address}
			break
		}
		if wanted == wanted.Masked() {
			chosen = append(chosen, address)
		}
	}
	if len(chosen) > 1 {
		for _, address := range chosen {
			if address == p.Plan.address() {
				chosen = []netip.Addr{address}
			}
		}
	}
	switch {
	case len(chosen) == 1:
		p.Plan.Fabrics[name] = netip.PrefixFrom(chosen[0], wanted.Bits()).String()
		return nil
	case len(chosen) > 1:
		return one(fmt.Sprintf("write the address for the portals with the length of the prefix: --fabric %s=%s/%d", name, chosen[0], wanted.Bits()),
			"this server has several addresses on fabric %s: %s", name, addressTexts(chosen))
	}
	return one("configure an address of that subnet on this server, or correct --fabric", "this server has no address on fabric %s (%s); it has %s",
		name, wanted, strings.Join(p.addresses, ", "))
}

// PlaceOn chooses the addresses of this server on the fabrics of a system. An option --fabric decides about the fabric that it names.
func (p *Preflight) PlaceOn(fabrics []*pb.Fabric) []Problem {
	present, err := p.System.Addresses()
	if err != nil {
		return one("see ip address", "the addresses of this server cannot be read: %v", err)
	}
	var problems []Problem
	for _, fabric := range fabrics {
		name := fabric.GetMeta().GetName()
		subnets := fabric.GetSpec().GetSubnets()
		for _, option := range p.Options.Fabrics {
			if of, cidr, _ := strings.Cut(option, "="); of == name {
				subnets = []string{cidr}
			}
		}
		problems = append(problems, p.placeOnSubnets(name, subnets, present)...)
	}
	return problems
}

// placeOnSubnets chooses an address on one of the subnets of a fabric.
func (p *Preflight) placeOnSubnets(name string, subnets []string, present []netip.Prefix) []Problem {
	problems := one("give it: sluicectl fabric set "+name+" --subnet CIDR", "fabric %s of the system has no subnet", name)
	for _, text := range subnets {
		subnet, err := netip.ParsePrefix(text)
		if err != nil {
			problems = one("write NAME=CIDR, for example --fabric red=192.0.2.0/24", "%s is not the subnet of fabric %s", text, name)
			continue
		}
		if problems = p.placeOnFabric(name, subnet, present); len(problems) == 0 {
			return nil
		}
	}
	return problems
}

func addressTexts(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, address := range addresses {
		texts[i] = address.String()
	}
	return strings.Join(texts, ", ")
}

func (p *Preflight) fabricText() string {
	var texts []string
	for _, name := range p.Plan.fabricNames() {
		texts = append(texts, name+" "+p.Plan.Fabrics[name])
	}
	return strings.Join(texts, ", ")
}
