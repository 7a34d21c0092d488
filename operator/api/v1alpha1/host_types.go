package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HostSpec is the desired state.
// +kubebuilder:validation:XValidation:rule="has(self.chap) || (has(self.allowUnauthenticated) && self.allowUnauthenticated)",message="without chap every client that uses the initiator name could log in: set chap, or set allowUnauthenticated if that is intended"
// +kubebuilder:validation:XValidation:rule="!has(self.mutualChap) || has(self.chap)",message="mutualChap needs chap, too (RFC 7143 §12.1.3)",fieldPath=".mutualChap"
type HostSpec struct {
	// iSCSI initiator names (RFC 7143 §4.2.7) of this machine, 1 to 16, in lower case. A name belongs to one host.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=223
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^(iqn[.][0-9]{4}-(0[1-9]|1[0-2])[.][a-z0-9.-]+(:[^A-Z[:space:],;/]+)?|eui[.][0-9a-f]{16}|naa[.]([0-9a-f]{16}|[0-9a-f]{32}))$'))",message="an initiator is an iSCSI name in lower case: iqn.YYYY-MM.reversed.domain:name, eui.<16 digits> or naa.<16 or 32 digits>"
	Initiators []string `json:"initiators"`
	// Credentials by which the host authenticates.
	// +optional
	Chap *ChapCredentials `json:"chap,omitempty"`
	// Credentials by which the target authenticates to this host (mutual CHAP). Its secret must differ from the host's.
	// +optional
	MutualChap *ChapCredentials `json:"mutualChap,omitempty"`
	// Must be set for a host without CHAP, so that no host lacks CHAP by mistake.
	// +optional
	AllowUnauthenticated bool `json:"allowUnauthenticated,omitempty"`
	// Switches to which the host is attached, one for each fabric; none: not known.
	// +optional
	// +listType=map
	// +listMapKey=fabric
	// +kubebuilder:validation:MaxItems=16
	Switches []SwitchReference `json:"switches,omitempty"`
	// Concurrent sessions over all gateways and targets, 1 to 4096.
	// +optional
	// +kubebuilder:default=64
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxSessions int32 `json:"maxSessions,omitempty"`
}

// ChapCredentials are a name and a secret (RFC 7143 §12.1, RFC 1994).
type ChapCredentials struct {
	// CHAP_N, at most 255 bytes; empty: the initiator's (or, for mutual CHAP, the target's) own name.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Username string `json:"username,omitempty"`
	// Secret of this namespace with the password, of 12 to 255 bytes; Windows accepts only 12 to 16. A change of it takes effect
	// at once.
	SecretRef SecretKeyReference `json:"secretRef"`
}

// SecretKeyReference names a key of a Secret in the same namespace.
type SecretKeyReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +optional
	// +kubebuilder:default=password
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// SwitchReference names a switch of a fabric.
type SwitchReference struct {
	// Fabric by name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Fabric string `json:"fabric"`
	// Switch of the fabric.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Switch string `json:"switch"`
}

// HostStatus is the observed state.
type HostStatus struct {
	CommonStatus `json:",inline"`
	// Versions of the Secrets that the control plane received last.
	// +optional
	SecretVersions string `json:"secretVersions,omitempty"`
	// Number of its present sessions.
	// +optional
	Sessions int32 `json:"sessions,omitempty"`
}

// Host is a machine that may log in: initiator names with their credentials.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=shost,categories=sluice
// +kubebuilder:printcolumn:name="Initiator",type=string,JSONPath=`.spec.initiators[0]`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Sessions",type=integer,JSONPath=`.status.sessions`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 189",message="a name has at most 189 characters: with its namespace it is a name in the control plane"
type Host struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              HostSpec `json:"spec"`
	// +optional
	Status HostStatus `json:"status,omitempty"`
}

// HostList is a list of Hosts.
// +kubebuilder:object:root=true
type HostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Host `json:"items"`
}
