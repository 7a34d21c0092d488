package model

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"
)

// Limits of a gateway.
const (
	MaxGatewayNumber = 65535
	MaxPortals       = 16
	DefaultWeight    = 100
	MaxWeight        = 1000
)

// CapabilityPairwiseKeys is declared by a gateway that has a separate key for each peer (gateway_stream.proto).
const CapabilityPairwiseKeys = "pairwise-keys"

// Gateway is one sluice-gateway process on one node.
type Gateway struct {
	Meta   Meta          `json:"meta"`
	Spec   GatewaySpec   `json:"spec"`
	Status GatewayStatus `json:"status"`
}

// GatewaySpec is the desired state.
type GatewaySpec struct {
	GatewayPool string `json:"gatewayPool"`
	// Node on which the gateway runs. Gateways of a node share its local pools, and fail with it.
	Node    string   `json:"node"`
	Portals []Portal `json:"portals"`
	// ForwardingAddress is host:port on the cluster network.
	ForwardingAddress string `json:"forwardingAddress"`
	// Weight is the share of the load relative to other gateways, 1…MaxWeight.
	Weight int32 `json:"weight"`
	// Cordoned gateways receive no new ownership and join no path set.
	Cordoned bool `json:"cordoned,omitempty"`
}

// Portal is an address on which a gateway listens, and the address that hosts are given. Each is host:port.
type Portal struct {
	Listen string `json:"listen"`
	// Advertised is the address that hosts are given. It differs from Listen behind NAT or a load balancer.
	Advertised string `json:"advertised"`
	Fabric     string `json:"fabric"`
	// Switch of the fabric, empty if unknown.
	Switch string `json:"switch,omitempty"`
}

// GatewayHealth is the leader's assessment of a gateway.
type GatewayHealth string

// The states of health.
const (
	GatewayNew GatewayHealth = "New"
	// GatewayReady has a stream.
	GatewayReady GatewayHealth = "Ready"
	// GatewayDisconnected has no stream, but its peers do not report it gone: it continues to serve (R3).
	GatewayDisconnected GatewayHealth = "Disconnected"
	// GatewayDead has no stream, and its peers find it refused or silent (R1).
	GatewayDead     GatewayHealth = "Dead"
	GatewayDraining GatewayHealth = "Draining"
	// GatewayNotServing has a stream, but hosts or its peers do not reach its ports. It receives no volume and no path, and what it
	// has moves to other gateways where that is possible.
	GatewayNotServing GatewayHealth = "NotServing"
	GatewayDrained    GatewayHealth = "Drained"
)

// RefusedAgain is the interval at which GatewayStatus.LastRefused is stored.
const RefusedAgain = 5 * time.Second

// GatewayStatus is the observed state, and the values that are assigned once.
type GatewayStatus struct {
	// Number is cluster-wide, 1…65535, and never reused (R13). It is also the target port group.
	Number uint32 `json:"number"`
	// PortalGroupTags has one tag for each portal of the spec (RFC 7143 §4.2.7.1), by fabric. Tags are never reused.
	PortalGroupTags map[string]uint32 `json:"portalGroupTags,omitempty"`
	Health          GatewayHealth     `json:"health"`
	// Drain was requested and stays in force until the request is withdrawn.
	Drain bool `json:"drain,omitempty"`
	// Incarnation is the process that had a stream last. The fields below identify that process to the gateway that must kill it.
	Incarnation  string `json:"incarnation,omitempty"`
	BootID       string `json:"bootID,omitempty"`
	PID          int64  `json:"pid,omitempty"`
	PIDStartTime uint64 `json:"pidStartTime,omitempty"`
	Version      string `json:"version,omitempty"`
	// PairwiseKeys reports whether this incarnation authenticates to each peer with a separate key.
	PairwiseKeys   bool      `json:"pairwiseKeys,omitempty"`
	AppliedVersion uint64    `json:"appliedVersion,omitempty"`
	LastSeen       time.Time `json:"lastSeen,omitzero"`
	// LastRefused is when a process with the gateway's name was last refused, at most RefusedAgain too early. A process that is refused
	// tries again every few seconds.
	LastRefused time.Time   `json:"lastRefused,omitzero"`
	Conditions  []Condition `json:"conditions,omitempty"`
}

// Ref names the present incarnation.
func (g *Gateway) Ref() GatewayRef {
	return GatewayRef{Number: g.Status.Number, Incarnation: g.Status.Incarnation}
}

// Metadata implements Object.
func (g *Gateway) Metadata() *Meta { return &g.Meta }

// Kind implements Object.
func (*Gateway) Kind() Kind { return KindGateway }

// StatusConditions implements Object.
func (g *Gateway) StatusConditions() *[]Condition { return &g.Status.Conditions }

// SetDefaults implements Object.
func (g *Gateway) SetDefaults() {
	if g.Spec.Weight == 0 {
		g.Spec.Weight = DefaultWeight
	}
	for i := range g.Spec.Portals {
		if g.Spec.Portals[i].Advertised == "" {
			g.Spec.Portals[i].Advertised = g.Spec.Portals[i].Listen
		}
	}
	if g.Status.Health == "" {
		g.Status.Health = GatewayNew
	}
}

// Normalize implements Normalizer: it converts every address to its canonical form.
func (g *Gateway) Normalize() {
	for i := range g.Spec.Portals {
		g.Spec.Portals[i] = g.Spec.Portals[i].Canonical()
	}
	g.Spec.ForwardingAddress = CanonicalAddress(g.Spec.ForwardingAddress)
}

// Validate implements Object.
func (g *Gateway) Validate() Violations {
	found := g.Meta.Validate()
	found.reference("spec.gatewayPool", g.Spec.GatewayPool, KindGatewayPool)
	if !ValidName(g.Spec.Node) {
		found.Add("spec.node", "must name the node the gateway runs on")
	}
	if g.Spec.Weight < 1 || g.Spec.Weight > MaxWeight {
		found.Addf("spec.weight", "is %d; 1 to %d are possible", g.Spec.Weight, MaxWeight)
	}
	if n := len(g.Spec.Portals); n < 1 || n > MaxPortals {
		found.Addf("spec.portals", "has %d portals; 1 to %d are possible", n, MaxPortals)
	}
	found.reachable("spec.forwardingAddress", g.Spec.ForwardingAddress)
	occupied := map[string]bool{}
	for i, portal := range g.Spec.Portals {
		field := fmt.Sprintf("spec.portals[%d]", i)
		found.address(field+".listen", portal.Listen)
		found.reachable(field+".advertised", portal.Advertised)
		found.reference(field+".fabric", portal.Fabric, KindFabric)
		if portal.Switch != "" && !ValidName(portal.Switch) {
			found.Add(field+".switch", "must be the name of a switch of the fabric, or empty")
		}
		fabricAndFamily := portal.Fabric + " " + family(portal.Advertised)
		if occupied[fabricAndFamily] {
			found.Addf(field+".fabric", "%s has a portal of this address family already: "+
				"two on one fabric fail together", portal.Fabric)
		}
		occupied[fabricAndFamily] = true
	}
	return append(found, g.listenTwice()...)
}

// listenTwice returns the listen addresses that another listener of the same gateway already uses. The process could not bind
// both.
func (g *Gateway) listenTwice() Violations {
	var found Violations
	listeners := map[string]string{"spec.forwardingAddress": g.Spec.ForwardingAddress}
	for i, portal := range g.Spec.Portals {
		field := PortalField(i) + ".listen"
		for _, other := range slices.Sorted(maps.Keys(listeners)) {
			if sameListener(portal.Listen, listeners[other]) {
				found.Addf(field, "%.80q includes the address of %s (%.80q): give each listener an address or a port of its own", portal.Listen,
					other, listeners[other])
			}
		}
		listeners[field] = portal.Listen
	}
	return found
}

// ValidateUpdate returns what is invalid about the change from an earlier spec.
func (g *Gateway) ValidateUpdate(from *Gateway) Violations {
	var found Violations
	if g.Spec.GatewayPool != from.Spec.GatewayPool {
		found.immutable("spec.gatewayPool", from.Spec.GatewayPool)
	}
	return found
}

// family distinguishes IPv6 addresses from others. Host names count as IPv4.
func family(address string) string {
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return "IPv6"
	}
	return "IPv4"
}

// reachable checks an address to which others connect.
func (v *Violations) reachable(field, address string) {
	v.address(field, address)
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		v.Addf(field, "%.80q stands for every address of a machine: give one address by which others reach this gateway", address)
	}
}

func (v *Violations) address(field, address string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		v.Addf(field, "%.80q is not host:port, as in 192.0.2.1:3260 or [2001:db8::1]:3260", address)
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		v.Addf(field, "%.80q: a port is 1 to 65535", address)
	}
}
