package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LabelGatewayPool on gateways, their pods and Services names their pool; LabelGateway on pods and Services names their gateway.
// LabelDrained on a pod: nothing is on it, so it may be evicted.
const (
	LabelGatewayPool = "sluice.dev/gateway-pool"
	LabelGateway     = "sluice.dev/gateway"
	LabelDrained     = "sluice.dev/drained"
)

// Annotations of nodes, each followed by a fabric's name: a node's place in the fabric, which the Kubernetes API does not have.
const (
	// AnnotationListen is the node's address on the fabric. Without it, an address of the node in a subnet of the fabric is used.
	AnnotationListen = "listen.sluice.dev/"
	// AnnotationAdvertised is the host:port (or only the host) that hosts are given if it differs, as behind NAT.
	AnnotationAdvertised = "advertised.sluice.dev/"
	// AnnotationSwitch is the switch of the fabric to which the node is attached, if it does not have LabelSwitch.
	AnnotationSwitch = LabelSwitch
)

// AnnotationForwarding on a Gateway without a pod is the address of its forwarding port, host:port. Such a Gateway itself has the
// annotations of a node. `sluicectl apply` reads them; the operator does not.
const AnnotationForwarding = "sluice.dev/forwarding-address"

// LabelSwitch on a node, followed by a fabric's name, is the switch of the fabric to which the node is attached. The scheduler
// reads labels, and spreads the gateways of a pool over switches.
const LabelSwitch = "switch.sluice.dev/"

// GatewaySpec is the desired state. A GatewayPool writes it; users set drain, cordoned and weight.
// +kubebuilder:validation:XValidation:rule="has(self.node) == has(oldSelf.node)",message="node is immutable: a pinned gateway stays on its node"
type GatewaySpec struct {
	// GatewayPool of the gateway. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="gatewayPool is immutable"
	GatewayPool string `json:"gatewayPool"`
	// Node to which it is pinned; unset: it floats. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="node is immutable: a pinned gateway stays on its node"
	Node string `json:"node,omitempty"`
	// Its portals, as in the pool.
	// +listType=map
	// +listMapKey=fabric
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Portals []PortalTemplate `json:"portals"`
	// Template of its pod. The pool changes it when it is this gateway's turn.
	Template GatewayTemplate `json:"template"`
	// Share of the load relative to other gateways, 1 to 1000.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`
	// A cordoned gateway gets no new ownership or paths, and keeps those that it has.
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`
	// A draining gateway's ownership and paths are moved away, until drain is reset.
	// +optional
	Drain bool `json:"drain,omitempty"`
	// Same effect as drain. The pool sets it while the gateway's node is cordoned, and resets it.
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
}

// GatewayStatus is the observed state.
type GatewayStatus struct {
	CommonStatus `json:",inline"`
	// Cluster-wide number, 1 to 65535, assigned once and never reused; also its target port group. It outlives pods.
	// +optional
	Number int64 `json:"number,omitempty"`
	// New, Ready, Disconnected, Dead, Draining or Drained, from the control plane.
	// +optional
	Health string `json:"health,omitempty"`
	// Node on which its pod runs.
	// +optional
	Node string `json:"node,omitempty"`
	// Pod in which it runs.
	// +optional
	Pod string `json:"pod,omitempty"`
	// Digest of the template from which the pod was made.
	// +optional
	Template string `json:"template,omitempty"`
	// Portals with their addresses.
	// +optional
	// +listType=map
	// +listMapKey=fabric
	Portals []GatewayPortal `json:"portals,omitempty"`
	// Version of the running program.
	// +optional
	Version string `json:"version,omitempty"`
	// Number of its sessions.
	// +optional
	Sessions int32 `json:"sessions,omitempty"`
	// Number of the volumes whose commands it executes.
	// +optional
	VolumesOwned int32 `json:"volumesOwned,omitempty"`
}

// GatewayPortal is an address on which a gateway listens, and the address that hosts are given.
type GatewayPortal struct {
	// Fabric of the portal.
	Fabric string `json:"fabric"`
	// host:port on which it listens.
	Listen string `json:"listen"`
	// host:port that hosts are given.
	Advertised string `json:"advertised"`
	// Switch of the fabric; empty: not known.
	// +optional
	Switch string `json:"switch,omitempty"`
	// Target portal group tag (RFC 7143 §4.2.7.1), assigned once and never reused. It outlives pods.
	// +optional
	PortalGroupTag int64 `json:"portalGroupTag,omitempty"`
}

// Gateway is one sluice-gateway with its number and portal group tags. It outlives its pods.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sgw,categories=sluice
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.gatewayPool`
// +kubebuilder:printcolumn:name="Number",type=integer,JSONPath=`.status.number`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.node`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumesOwned`
// +kubebuilder:printcolumn:name="Sessions",type=integer,JSONPath=`.status.sessions`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Gateway struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GatewaySpec `json:"spec"`
	// +optional
	Status GatewayStatus `json:"status,omitempty"`
}

// GatewayList is a list of Gateways.
// +kubebuilder:object:root=true
type GatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gateway `json:"items"`
}
