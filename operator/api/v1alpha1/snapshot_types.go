package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SnapshotSpec is the desired state. It is immutable except for the reclaim policy.
type SnapshotSpec struct {
	// A Volume in this namespace. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=189
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="volume is immutable: make a new Snapshot"
	Volume string `json:"volume"`
	// Treatment of the data when the snapshot is deleted: it is deleted (Delete), or it stays in the pool for an administrator
	// (Retain).
	// +optional
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum=Delete;Retain
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy,omitempty"`
}

// SnapshotStatus is the observed state.
type SnapshotStatus struct {
	CommonStatus `json:",inline"`
	// Capacity of the volume when the snapshot was taken.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// Time at which it was taken.
	// +optional
	TakenTime *metav1.Time `json:"takenTime,omitempty"`
	// Epoch of the volume at which it was, or is being, rolled back to this snapshot, as the annotation sluice.dev/roll-back
	// requests. The condition RolledBack reports the progress.
	// +optional
	RolledBackAtEpoch string `json:"rolledBackAtEpoch,omitempty"`
}

// Snapshot is the crash-consistent content of a volume at one moment.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ssnap,categories=sluice
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volume`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="Taken",type=date,JSONPath=`.status.takenTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 189",message="a name has at most 189 characters: with its namespace it is a name in the control plane"
type Snapshot struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SnapshotSpec `json:"spec"`
	// +optional
	Status SnapshotStatus `json:"status,omitempty"`
}

// SnapshotList is a list of Snapshots.
// +kubebuilder:object:root=true
type SnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Snapshot `json:"items"`
}
