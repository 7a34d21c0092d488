package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VolumeSpec is the desired state.
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source)",message="a volume's content is given when it is made: make a new Volume"
// +kubebuilder:validation:XValidation:rule="!quantity(string(self.size)).isInteger() || quantity(string(self.size)).asInteger() % self.blockSize == 0",message="size must be a multiple of blockSize",fieldPath=".size"
type VolumeSpec struct {
	// StoragePool of the volume. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pool is immutable: make a new Volume and copy"
	Pool string `json:"pool"`
	// Capacity in bytes, for example 10Gi: a multiple of the block size, 1Mi to 64Ti. It only grows. A growth that is not done
	// yet can be withdrawn, down to status.capacity.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Ti')) <= 0",message="size must be whole bytes, 1Mi to 64Ti"
	Size resource.Quantity `json:"size"`
	// Logical block size in bytes, 512 or 4096. Physical blocks have 4096 bytes. Immutable. VMware does not support LUNs with
	// 4096.
	// +optional
	// +kubebuilder:default=512
	// +kubebuilder:validation:Enum=512;4096
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="blockSize is immutable: make a new Volume and copy"
	BlockSize int32 `json:"blockSize,omitempty"`
	// Whether the LUN reports a volatile write cache (SBC-4 §6.5.6, WCE). Disabled: a write is acknowledged once it is
	// durable.
	// +optional
	// +kubebuilder:default=Disabled
	// +kubebuilder:validation:Enum=Disabled;Enabled
	WriteCache WriteCache `json:"writeCache,omitempty"`
	// Limits, enforced at the volume's owner.
	// +optional
	Qos *Qos `json:"qos,omitempty"`
	// Initial content; none: zeros. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a volume's content is given when it is made: make a new Volume"
	Source *VolumeSource `json:"source,omitempty"`
	// Treatment of the data when the volume is deleted: it is deleted (Delete), it stays in the pool for an administrator
	// (Retain), or, in an RBD pool, it is moved to the pool's trash and can be restored for seven days (Trash).
	// +optional
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum=Delete;Retain;Trash
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy,omitempty"`
}

// WriteCache decides whether a LUN has a volatile write cache.
type WriteCache string

// The write caches.
const (
	WriteCacheDisabled WriteCache = "Disabled"
	WriteCacheEnabled  WriteCache = "Enabled"
)

// ReclaimPolicy decides what happens to the data when its object is deleted.
type ReclaimPolicy string

// The policies.
const (
	ReclaimDelete ReclaimPolicy = "Delete"
	ReclaimRetain ReclaimPolicy = "Retain"
	ReclaimTrash  ReclaimPolicy = "Trash"
)

// Qos limits a volume. Token buckets: sustained rate and how much may be saved up.
// +kubebuilder:validation:XValidation:rule="!has(self.iopsBurst) || self.iopsBurst == 0 || (has(self.iops) && self.iops > 0)",message="iopsBurst has no iops to exceed: give iops, too"
// +kubebuilder:validation:XValidation:rule="!has(self.bytesBurst) || self.bytesBurst == 0 || (has(self.bytesPerSecond) && self.bytesPerSecond > 0)",message="bytesBurst has no rate to exceed: give bytesPerSecond, too"
type Qos struct {
	// Commands on blocks per second, of any kind and length (reads, writes, UNMAP, copies); 0: unlimited.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000000
	IOPS int64 `json:"iops,omitempty"`
	// Burst in commands; 0: one second's worth.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000000
	IOPSBurst int64 `json:"iopsBurst,omitempty"`
	// Bytes per second, in both directions together; 0: unlimited, else at least 1048576. WRITE SAME counts all bytes that it
	// writes, and a copy those that it reads or writes here. UNMAP, and WRITE SAME of zeros with UNMAP, count none.
	// +optional
	// +kubebuilder:validation:Maximum=1000000000000
	// +kubebuilder:validation:XValidation:rule="self == 0 || self >= 1048576",message="bytesPerSecond must be 0 (unlimited) or at least 1048576: below it one large command waits for minutes"
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Burst in bytes; 0: one second's worth.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	BytesBurst int64 `json:"bytesBurst,omitempty"`
}

// VolumeSource names the source of a volume: exactly one. The volume is at least as large as its source.
// +kubebuilder:validation:XValidation:rule="[has(self.snapshot), has(self.volume), has(self.image)].filter(x, x).size() == 1",message="a source is exactly one of snapshot, volume and image"
type VolumeSource struct {
	// A Snapshot in this namespace, in the same pool.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=189
	Snapshot string `json:"snapshot,omitempty"`
	// A Volume in this namespace, in the same pool, with its content at the time of copying.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=189
	Volume string `json:"volume,omitempty"`
	// RBD: an image in the pool that no volume uses. The volume adopts it with its content, and renames it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	Image string `json:"image,omitempty"`
}

// VolumeStatus is the observed state.
type VolumeStatus struct {
	CommonStatus `json:",inline"`
	// Device identity, which never changes: NAA designator in 16 hexadecimal digits (SPC-5 §7.7.6.6.5).
	// +optional
	NAA string `json:"naa,omitempty"`
	// Unit serial number, which never changes.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
	// Unowned, Acquiring, Opening, Owned, Moving, Fencing or Orphaned.
	// +optional
	Ownership string `json:"ownership,omitempty"`
	// Name of the Gateway that executes the volume's commands; empty: none.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Number of that gateway; 0: none.
	// +optional
	OwnerGateway int64 `json:"ownerGateway,omitempty"`
	// Fencing number, which increases by one at each change of owner.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// Capacity that hosts see. It lags behind the spec while the volume grows.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// Bytes that the volume takes in its pool; unset where the pool cannot tell.
	// +optional
	AllocatedBytes *int64 `json:"allocatedBytes,omitempty"`
	// A rollback to a snapshot is in progress. The volume is assigned to no gateway before it is done.
	// +optional
	RollingBack bool `json:"rollingBack,omitempty"`
}

// Volume is a virtual disk in a storage pool.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=svol,categories=sluice
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.status.owner`
// +kubebuilder:printcolumn:name="Epoch",type=integer,priority=1,JSONPath=`.status.epoch`
// +kubebuilder:printcolumn:name="NAA",type=string,priority=1,JSONPath=`.status.naa`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="quantity(string(self.spec.size)).compareTo(quantity(string(oldSelf.spec.size))) >= 0 || has(self.status) && has(self.status.capacity) && quantity(string(self.spec.size)).compareTo(quantity(string(self.status.capacity))) >= 0",message="a volume only grows: make a new, smaller Volume and copy",fieldPath=".spec.size"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 189",message="a name has at most 189 characters: with its namespace it is a name in the control plane"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source) || !has(self.spec.source.volume) || self.spec.source.volume != self.metadata.name",message="a volume cannot be made from itself",fieldPath=".spec.source.volume"
type Volume struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VolumeSpec `json:"spec"`
	// +optional
	Status VolumeStatus `json:"status,omitempty"`
}

// VolumeList is a list of Volumes.
// +kubebuilder:object:root=true
type VolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Volume `json:"items"`
}
