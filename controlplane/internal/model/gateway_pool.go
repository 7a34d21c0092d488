package model

import "fmt"

// Limits of a gateway pool.
const (
	MaxFabricsPerPool     = 16
	DefaultGatewaySession = 4096
	MaxGatewaySessions    = 65536
)

// GatewayPool is a set of gateways that export the same targets.
type GatewayPool struct {
	Meta   Meta              `json:"meta"`
	Spec   GatewayPoolSpec   `json:"spec"`
	Status GatewayPoolStatus `json:"status"`
}

// GatewayPoolSpec is the desired state.
type GatewayPoolSpec struct {
	// Fabrics on which the pool's gateways have portals.
	Fabrics               []string `json:"fabrics"`
	MaxSessionsPerGateway int32    `json:"maxSessionsPerGateway"`
}

// GatewayPoolStatus is the observed state.
type GatewayPoolStatus struct {
	Conditions []Condition `json:"conditions,omitempty"`
}

// Metadata implements Object.
func (p *GatewayPool) Metadata() *Meta { return &p.Meta }

// Kind implements Object.
func (*GatewayPool) Kind() Kind { return KindGatewayPool }

// StatusConditions implements Object.
func (p *GatewayPool) StatusConditions() *[]Condition { return &p.Status.Conditions }

// SetDefaults implements Object.
func (p *GatewayPool) SetDefaults() {
	if p.Spec.MaxSessionsPerGateway == 0 {
		p.Spec.MaxSessionsPerGateway = DefaultGatewaySession
	}
}

// Validate implements Object.
func (p *GatewayPool) Validate() Violations {
	found := p.Meta.Validate()
	if n := len(p.Spec.Fabrics); n < 1 || n > MaxFabricsPerPool {
		found.Addf("spec.fabrics", "has %d fabrics; 1 to %d are possible", n, MaxFabricsPerPool)
	}
	seen := map[string]bool{}
	for i, fabric := range p.Spec.Fabrics {
		field := fmt.Sprintf("spec.fabrics[%d]", i)
		found.reference(field, fabric, KindFabric)
		if seen[fabric] {
			found.Addf(field, "names %s twice", fabric)
		}
		seen[fabric] = true
	}
	if n := p.Spec.MaxSessionsPerGateway; n < 1 || n > MaxGatewaySessions {
		found.Addf("spec.maxSessionsPerGateway", "is %d; 1 to %d are possible", n, MaxGatewaySessions)
	}
	return found
}
