package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LabelGatewayPool on gateways, their pods and Services names their pool; LabelGateway on pods and Services their gateway.
// LabelDrained on a pod says that nothing is on it: it may be evicted.
const (
	LabelGatewayPool = "sluice.dev/gateway-pool"
	LabelGateway     = "sluice.dev/gateway"
	LabelDrained     = "sluice.dev/drained"
)

// Annotations of nodes, each followed by a fabric's name: what the Kubernetes API does not know of a node's place in it.
const (
	// AnnotationListen is the node's address on the fabric. Without it one that the node has in a subnet of the fabric is taken.
	AnnotationListen = "listen.sluice.dev/"
	// AnnotationAdvertised is host:port (or only the host) that hosts are told, where it is another one, as behind NAT.
	AnnotationAdvertised = "advertised.sluice.dev/"
	// AnnotationSwitch is the switch of the fabric that the node is attached to, where LabelSwitch does not say it.
	AnnotationSwitch = LabelSwitch
)

// AnnotationForwarding on a Gateway that has no pod is the address of its forwarding port, host:port. Such a Gateway has the annotations
// of a node itself: `sluicectl apply` reads them, the operator does not.
const AnnotationForwarding = "sluice.dev/forwarding-address"

// LabelSwitch on a node, followed by a fabric's name, is the switch of the fabric that the node is attached to. As a label the
// scheduler knows it, too, and spreads the gateways of a pool over switches.
const LabelSwitch = "switch.sluice.dev/"

// GatewaySpec is what is wanted. A GatewayPool writes it; drain, cordoned and weight are for people.
// +kubebuilder:validation:XValidation:rule="has(self.node) == has(oldSelf.node)",message="node is immutable: a pinned gateway stays on its node"
type GatewaySpec struct {
	// GatewayPool it belongs to. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="gatewayPool is immutable"
	GatewayPool string `json:"gatewayPool"`
	// Node it is pinned to; unset: it floats. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="node is immutable: a pinned gateway stays on its node"
	Node string `json:"node,omitempty"`
	// Its portals, as the pool has them.
	// +listType=map
	// +listMapKey=fabric
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Portals []PortalTemplate `json:"portals"`
	// What its pod is made of. The pool changes it when it is this gateway's turn.
	Template GatewayTemplate `json:"template"`
	// Share of the load relative to other gateways, 1 to 1000.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`
	// Takes no new ownership or paths; keeps what it has.
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`
	// All ownership and paths are moved away, until it is taken back.
	// +optional
	Drain bool `json:"drain,omitempty"`
	// As drain; the pool sets it while the gateway's node is cordoned, and takes it back.
	// +optional
	Maintenance bool `json:"maintenance,omitempty"`
}

// GatewayStatus is what is observed.
type GatewayStatus struct {
	CommonStatus `json:",inline"`
	// Cluster-wide number, 1 to 65535, given once and never reused; also its target port group. It outlives pods.
	// +optional
	Number int64 `json:"number,omitempty"`
	// New, Ready, Disconnected, Dead, Draining or Drained, as the control plane sees it.
	// +optional
	Health string `json:"health,omitempty"`
	// Node that its pod runs on.
	// +optional
	Node string `json:"node,omitempty"`
	// Pod that it runs in.
	// +optional
	Pod string `json:"pod,omitempty"`
	// The template that the pod was made of, as a digest.
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
	// Sessions on it.
	// +optional
	Sessions int32 `json:"sessions,omitempty"`
	// Volumes whose commands it executes.
	// +optional
	VolumesOwned int32 `json:"volumesOwned,omitempty"`
}

// GatewayPortal is an address to listen on and the address hosts are told.
type GatewayPortal struct {
	// Fabric it is on.
	Fabric string `json:"fabric"`
	// host:port it listens on.
	Listen string `json:"listen"`
	// host:port hosts are told.
	Advertised string `json:"advertised"`
	// Switch of the fabric; empty: not known.
	// +optional
	Switch string `json:"switch,omitempty"`
	// Target portal group tag (RFC 7143 §4.2.7.1), given once and never reused. It outlives pods.
	// +optional
	PortalGroupTag int64 `json:"portalGroupTag,omitempty"`
}

// Gateway is one sluice-gateway with its number and portal group tags. It outlives the pods it runs in.
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

// GatewayList is a list of them.
// +kubebuilder:object:root=true
type GatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gateway `json:"items"`
}
