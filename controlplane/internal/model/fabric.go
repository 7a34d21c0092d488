package model

import (
	"fmt"
	"net/netip"
)

// Limits of a fabric.
const (
	MaxSubnets  = 64
	MaxSwitches = 1000
	MaxLinks    = 10000
	MaxLinkCost = 1000
)

// Fabric is a network that fails independently of others: switches and the links between them.
type Fabric struct {
	Meta   Meta         `json:"meta"`
	Spec   FabricSpec   `json:"spec"`
	Status FabricStatus `json:"status"`
}

// FabricSpec is the desired state.
type FabricSpec struct {
	// Subnets in CIDR notation.
	Subnets []string `json:"subnets,omitempty"`
	// Switches by name. A fabric without switches has one, with the name of the fabric.
	Switches []string     `json:"switches,omitempty"`
	Links    []FabricLink `json:"links,omitempty"`
}

// FabricLink connects two switches in both directions.
type FabricLink struct {
	A string `json:"a"`
	B string `json:"b"`
	// Cost of a path over the link, 1…MaxLinkCost.
	Cost int32 `json:"cost"`
}

// FabricStatus is the observed state.
type FabricStatus struct {
	Conditions []Condition `json:"conditions,omitempty"`
}

// Metadata implements Object.
func (f *Fabric) Metadata() *Meta { return &f.Meta }

// Kind implements Object.
func (*Fabric) Kind() Kind { return KindFabric }

// StatusConditions implements Object.
func (f *Fabric) StatusConditions() *[]Condition { return &f.Status.Conditions }

// SetDefaults implements Object.
func (f *Fabric) SetDefaults() {
	if len(f.Spec.Switches) == 0 {
		f.Spec.Switches = []string{f.Meta.Name}
	}
	for i := range f.Spec.Links {
		if f.Spec.Links[i].Cost == 0 {
			f.Spec.Links[i].Cost = 1
		}
	}
}

// Validate implements Object.
func (f *Fabric) Validate() Violations {
	found := f.Meta.Validate()
	if len(f.Spec.Subnets) > MaxSubnets {
		found.Addf("spec.subnets", "has %d entries, at most %d are possible", len(f.Spec.Subnets), MaxSubnets)
	}
	for i, subnet := range f.Spec.Subnets {
		prefix, err := netip.ParsePrefix(subnet)
		if err != nil || prefix != prefix.Masked() {
			found.Addf(fmt.Sprintf("spec.subnets[%d]", i), "%.60q is no subnet, as in 192.0.2.0/24", subnet)
		}
	}
	if len(f.Spec.Switches) > MaxSwitches || len(f.Spec.Links) > MaxLinks {
		found.Addf("spec", "has %d switches and %d links, at most %d and %d are possible",
			len(f.Spec.Switches), len(f.Spec.Links), MaxSwitches, MaxLinks)
	}
	known := map[string]bool{}
	for i, name := range f.Spec.Switches {
		field := fmt.Sprintf("spec.switches[%d]", i)
		if !ValidName(name) {
			found.Add(field, "must be a DNS-1123 subdomain")
		}
		if known[name] {
			found.Addf(field, "%.60q is given twice", name)
		}
		known[name] = true
	}
	for i, link := range f.Spec.Links {
		field := fmt.Sprintf("spec.links[%d]", i)
		if !known[link.A] || !known[link.B] {
			found.Addf(field, "joins %.60q and %.60q, which are not both in spec.switches", link.A, link.B)
		} else if link.A == link.B {
			found.Addf(field, "joins %s to itself", link.A)
		}
		if link.Cost < 1 || link.Cost > MaxLinkCost {
			found.Addf(field+".cost", "is %d; 1 to %d are possible", link.Cost, MaxLinkCost)
		}
	}
	return found
}
