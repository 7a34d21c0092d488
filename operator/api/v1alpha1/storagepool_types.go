package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StoragePoolSpec is the desired state. The type of the pool and the fields that identify its storage are immutable.
// +kubebuilder:validation:XValidation:rule="has(self.local) != has(self.rbd)",message="a pool is exactly one of local and rbd"
// +kubebuilder:validation:XValidation:rule="has(self.local) == has(oldSelf.local)",message="the kind of a pool is immutable: make a new StoragePool"
type StoragePoolSpec struct {
	// Storage of one node. Only gateways on that node can own its volumes.
	// +optional
	Local *LocalPool `json:"local,omitempty"`
	// A pool in a Ceph cluster.
	// +optional
	Rbd *RbdPool `json:"rbd,omitempty"`
	// Used share of the pool, in percent, above which LUNs report 38/07 and an event is recorded, 1 to 99.
	// +optional
	// +kubebuilder:default=85
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	WarnPercent int32 `json:"warnPercent,omitempty"`
	// Ceph only: GatewayPools whose gateways receive the key of this pool, own its volumes and do its jobs. Empty: the gateway pools
	// of the targets that map a volume of this pool; while there is no such target, the only gateway pool of the system, or the one
	// named default.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	GatewayPools []string `json:"gatewayPools,omitempty"`
	// Ceph only: images that Volumes may adopt by spec.source.image: exact names, or patterns in which * stands for any characters. A
	// pattern never matches a name of the form volume-UID or snapshot-UID. Empty: none. The image of an existing Volume or Snapshot
	// can never be adopted.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	AdoptableImages []string `json:"adoptableImages,omitempty"`
	// Number of times that an administrator has confirmed a deliberate replacement of the pool's storage. Increase it by one if
	// the condition Ready has the reason PoolNotIdentified and the right file system is mounted. It only grows.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="adoptions only grows"
	Adoptions int32 `json:"adoptions,omitempty"`
}

// LocalPool is storage of one node.
// +kubebuilder:validation:XValidation:rule="has(self.directory) != has(self.devices)",message="a local pool has exactly one of directory and devices"
// +kubebuilder:validation:XValidation:rule="has(self.directory) == has(oldSelf.directory)",message="where a pool lives is immutable: make a new StoragePool"
type LocalPool struct {
	// Name of the Node. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="node is immutable: make a new StoragePool"
	Node string `json:"node"`
	// Absolute path of a directory on XFS or ext4. Volumes are sparse files in it. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[^/]+)+$') && !self.matches('/[.][.]?(/|$)')",message="directory must be a clean absolute path, as in /srv/sluice"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="directory is immutable: make a new StoragePool"
	Directory string `json:"directory,omitempty"`
	// Or block devices by absolute path, at most 256. One volume uses the whole of each.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^/dev(/[^/]+)+$`
	Devices []string `json:"devices,omitempty"`
}

// RbdPool is a pool in a Ceph cluster.
type RbdPool struct {
	// Monitors as address:port, 1 to 15.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MaxLength=260
	// +kubebuilder:validation:items:Pattern=`^(\[[0-9a-fA-F:.]+\]|[^\[\]:/ ]+):[0-9]{1,5}$`
	Monitors []string `json:"monitors"`
	// Ceph user without the `client.` prefix.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('client.')",message="user is without the client. in front"
	User string `json:"user"`
	// Secret with that user's key, in base64 as `ceph auth print-key` prints it. A change of it takes effect at once.
	KeySecretRef NamespacedSecretKeyReference `json:"keySecretRef"`
	// Pool in Ceph. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pool is immutable: make a new StoragePool"
	Pool string `json:"pool"`
	// RADOS namespace; empty: the default one. Immutable.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="radosNamespace is immutable: make a new StoragePool"
	RadosNamespace string `json:"radosNamespace"`
	// Pool for the data of new images (erasure coded, say); empty: the same pool.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	DataPool string `json:"dataPool,omitempty"`
}

// NamespacedSecretKeyReference names a key of a Secret.
type NamespacedSecretKeyReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +optional
	// +kubebuilder:default=key
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// StoragePoolStatus is the observed state.
type StoragePoolStatus struct {
	CommonStatus `json:",inline"`
	// Version of the Secret that the control plane received last.
	// +optional
	SecretVersions string `json:"secretVersions,omitempty"`
	// Capacity in bytes.
	// +optional
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
	// Bytes in use.
	// +optional
	UsedBytes int64 `json:"usedBytes,omitempty"`
	// Number of its volumes.
	// +optional
	Volumes int32 `json:"volumes,omitempty"`
	// The pool's file system or cluster supports snapshots and clones.
	// +optional
	SnapshotsSupported bool `json:"snapshotsSupported,omitempty"`
	// Images with a name of a volume's image that belong to no volume of this system: left by a retained volume, made by another
	// system, or made after the backup from which the store was restored. At most 100 are listed; orphanedImageCount has their
	// number. A Volume adopts one by source.image.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	OrphanedImages []string `json:"orphanedImages,omitempty"`
	// Number of orphaned images.
	// +optional
	OrphanedImageCount int32 `json:"orphanedImageCount,omitempty"`
	// Images of volumes that the pool does not contain. At most 100 are listed; missingImageCount has their number.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	MissingImages []string `json:"missingImages,omitempty"`
	// Number of missing images.
	// +optional
	MissingImageCount int32 `json:"missingImageCount,omitempty"`
	// Id of the marker on the pool's storage.
	// +optional
	Marker string `json:"marker,omitempty"`
	// Number of confirmed replacements in the marker.
	// +optional
	MarkerAdoptions int32 `json:"markerAdoptions,omitempty"`
	// Largest size of a volume that the pool can hold, in bytes: that of its largest device, or of a file in its file system; absent: not
	// known.
	// +optional
	MaxVolumeBytes int64 `json:"maxVolumeBytes,omitempty"`
}

// StoragePool is the storage of volumes.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=spool,categories=sluice
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.local.node`
// +kubebuilder:printcolumn:name="Ceph",type=string,JSONPath=`.spec.rbd.pool`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumes`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StoragePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              StoragePoolSpec `json:"spec"`
	// +optional
	Status StoragePoolStatus `json:"status,omitempty"`
}

// StoragePoolList is a list of StoragePools.
// +kubebuilder:object:root=true
type StoragePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StoragePool `json:"items"`
}
