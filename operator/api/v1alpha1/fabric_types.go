package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FabricSpec is the desired state.
type FabricSpec struct {
	// Subnets in CIDR notation, at most 64. Portals and hosts with addresses in them are on this fabric.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="self.all(s, isCIDR(s) && cidr(s) == cidr(s).masked())",message="a subnet is in CIDR notation, without host bits, as 192.0.2.0/24 or 2001:db8::/64"
	Subnets []string `json:"subnets,omitempty"`
	// Names of its switches, at most 1000; none: one switch, named as the fabric.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Switches []string `json:"switches,omitempty"`
	// Links between switches, at most 10000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Links []FabricLink `json:"links,omitempty"`
}

// FabricLink connects two switches in both directions.
// +kubebuilder:validation:XValidation:rule="self.a != self.b",message="a link joins two different switches"
type FabricLink struct {
	// One of the switches.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	A string `json:"a"`
	// The other one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	B string `json:"b"`
	// Cost of a path over the link, 1 to 1000.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Cost int32 `json:"cost,omitempty"`
}

// FabricStatus is the observed state.
type FabricStatus struct {
	CommonStatus `json:",inline"`
	// Portals of gateways on it.
	// +optional
	Portals int32 `json:"portals,omitempty"`
	// Hosts on it.
	// +optional
	Hosts int32 `json:"hosts,omitempty"`
}

// Fabric is a network that fails independently of others: switches and the links between them.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sfab,categories=sluice
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Subnets",type=string,JSONPath=`.spec.subnets`
// +kubebuilder:printcolumn:name="Portals",type=integer,JSONPath=`.status.portals`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="a fabric's name has at most 63 characters: it is part of keys of nodes' annotations"
type Fabric struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec FabricSpec `json:"spec,omitempty"`
	// +optional
	Status FabricStatus `json:"status,omitempty"`
}

// FabricList is a list of Fabrics.
// +kubebuilder:object:root=true
type FabricList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Fabric `json:"items"`
}
