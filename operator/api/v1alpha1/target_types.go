package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TargetSpec is the desired state.
// +kubebuilder:validation:XValidation:rule="has(self.iqn) == has(oldSelf.iqn)",message="iqn is immutable: hosts know the target by it; make a new Target"
type TargetSpec struct {
	// iSCSI name (RFC 7143 §4.2.7): iqn. or eui. or naa., lower case, at most 223 bytes. Unset:
	// `iqn.2026-11.dev.sluice:<namespace>.<name>`. Immutable, unique.
	// +optional
	// +kubebuilder:validation:MaxLength=223
	// +kubebuilder:validation:XValidation:rule="self.matches('^(iqn[.][0-9]{4}-(0[1-9]|1[0-2])[.][a-z0-9.-]+(:[^A-Z[:space:],;/]+)?|eui[.][0-9a-f]{16}|naa[.]([0-9a-f]{16}|[0-9a-f]{32}))$')",message="iqn must be an iSCSI name in lower case: iqn.YYYY-MM.reversed.domain:name, eui.<16 digits> or naa.<16 or 32 digits>"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="iqn is immutable: hosts know the target by it; make a new Target"
	IQN string `json:"iqn,omitempty"`
	// GatewayPool whose gateways export the target.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	GatewayPool string `json:"gatewayPool"`
	// Gateways in the path set, 1 to 32.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	Paths int32 `json:"paths,omitempty"`
	// Volumes and their logical unit numbers, at most 4096.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=4096
	Luns []TargetLun `json:"luns,omitempty"`
	// Hosts of this namespace that may log in. No other host can, and discovery shows the target to no other host.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=189
	Hosts []string `json:"hosts,omitempty"`
}

// TargetLun maps a volume to a logical unit number that is the same on every gateway.
type TargetLun struct {
	// Logical unit number, 0 to 16383 (SAM-5 §4.7.7.3 flat space addressing), unique in the target. The number of an unmapped LUN
	// is in quarantine for a while, because hosts may still have its device.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16383
	ID int32 `json:"id"`
	// A Volume in this namespace. It cannot be replaced while its number is in use, because hosts would write to another volume
	// through the device that they know.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=189
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="hosts would write to this volume believing it is the one before: unmap the number first, or take another"
	Volume string `json:"volume"`
	// Writes and reservations are refused with 07/27/00.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// TargetStatus is the observed state.
type TargetStatus struct {
	CommonStatus `json:",inline"`
	// iSCSI name of the target.
	// +optional
	IQN string `json:"iqn,omitempty"`
	// Gateways that export the target.
	// +optional
	// +listType=map
	// +listMapKey=gateway
	Paths []TargetPath `json:"paths,omitempty"`
	// Addresses for logins, separated by commas, for users.
	// +optional
	Portals string `json:"portals,omitempty"`
	// Number of present sessions of hosts.
	// +optional
	Sessions int32 `json:"sessions,omitempty"`
}

// TargetPath is one gateway of the path set.
type TargetPath struct {
	// Name of the Gateway.
	Gateway string `json:"gateway"`
	// Target port group (SPC-5 §6.35), the gateway's number.
	TargetPortGroup int64 `json:"targetPortGroup"`
	// Ports on this gateway, one for each of its portals.
	// +optional
	// +listType=atomic
	Ports []TargetPort `json:"ports,omitempty"`
	// The gateway has applied the newest state of this target.
	// +optional
	Applied bool `json:"applied,omitempty"`
}

// TargetPort is an iSCSI name with a portal group. Its ids are assigned once and never reused.
type TargetPort struct {
	// Address and port that hosts connect to.
	Address string `json:"address"`
	// Fabric of the address.
	Fabric string `json:"fabric"`
	// Target portal group tag (RFC 7143 §4.2.7.1), 1 to 65535.
	PortalGroupTag int64 `json:"portalGroupTag"`
	// Relative target port identifier (SPC-5 §4.6.5), 1 to 65535.
	RelativeTargetPortID int64 `json:"relativeTargetPortID"`
}

// Target is an iSCSI target: a name, LUNs, the hosts that may log in, and the gateways that export it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=stgt,categories=sluice
// +kubebuilder:printcolumn:name="IQN",type=string,JSONPath=`.status.iqn`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.gatewayPool`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Redundant",type=string,JSONPath=`.status.conditions[?(@.type=="PathsRedundant")].status`
// +kubebuilder:printcolumn:name="Sessions",type=integer,JSONPath=`.status.sessions`
// +kubebuilder:printcolumn:name="Portals",type=string,priority=1,JSONPath=`.status.portals`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 189",message="a name has at most 189 characters: with its namespace it is a name in the control plane"
type Target struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TargetSpec `json:"spec"`
	// +optional
	Status TargetStatus `json:"status,omitempty"`
}

// TargetList is a list of them.
// +kubebuilder:object:root=true
type TargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Target `json:"items"`
}
