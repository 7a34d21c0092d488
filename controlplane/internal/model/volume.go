package model

import (
	"time"
)

// Limits of a volume, in bytes.
const (
	MinVolumeSize = 1 << 20
	MaxVolumeSize = 64 << 40
	// MinBytesPerSecond keeps a limited volume usable: below it one large command would wait for minutes. In bytes per second.
	MinBytesPerSecond = 1 << 20
)

// ReclaimPolicy decides what happens to the data when its object is deleted.
type ReclaimPolicy string

// The policies.
const (
	ReclaimDelete ReclaimPolicy = "Delete"
	ReclaimRetain ReclaimPolicy = "Retain"
	// ReclaimTrash moves an RBD image to the trash of its pool, where it can be restored for TrashKeeps.
	ReclaimTrash ReclaimPolicy = "Trash"
)

// TrashKeeps is the time for which an image in a pool's trash can be restored.
const TrashKeeps = 7 * 24 * time.Hour

// Volume is a virtual disk in a storage pool.
type Volume struct {
	Meta   Meta         `json:"meta"`
	Spec   VolumeSpec   `json:"spec"`
	Status VolumeStatus `json:"status"`
}

// VolumeSpec is the desired state.
type VolumeSpec struct {
	// Pool is immutable.
	Pool string `json:"pool"`
	// SizeBytes is a multiple of the block size, MinVolumeSize…MaxVolumeSize. It only grows. A growth that is not yet done can be
	// withdrawn, down to Status.CapacityBytes.
	SizeBytes int64 `json:"sizeBytes"`
	// BlockSize is the logical block size in bytes, 512 or 4096; immutable.
	BlockSize int32 `json:"blockSize"`
	// WriteCache makes the LUN report a volatile write cache (SBC-4 §6.5.6, WCE).
	WriteCache    bool          `json:"writeCache"`
	QoS           QoS           `json:"qos,omitzero"`
	Source        VolumeSource  `json:"source,omitzero"`
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy"`
}

// QoS limits a volume at its owner: commands per second, bytes per second, and bursts in commands and bytes; zero is unlimited.
// Resolved resolves the default of a burst; no other code interprets a burst of zero.
type QoS struct {
	IOPS           int64 `json:"iops,omitempty"`
	IOPSBurst      int64 `json:"iopsBurst,omitempty"`
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	BytesBurst     int64 `json:"bytesBurst,omitempty"`
}

// Resolved returns the limits with the default of each burst: the amount that one second permits.
func (q QoS) Resolved() QoS {
	if q.IOPSBurst == 0 {
		q.IOPSBurst = q.IOPS
	}
	if q.BytesBurst == 0 {
		q.BytesBurst = q.BytesPerSecond
	}
	return q
}

// VolumeSource is the source of a volume's content: nothing, a snapshot, a volume, or an image that becomes the volume's.
// Immutable.
type VolumeSource struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
	// Image in the RBD pool that no volume uses. Adoption renames it.
	Image string `json:"image,omitempty"`
}

func (s VolumeSource) count() int {
	n := 0
	for _, name := range []string{s.Snapshot, s.Volume, s.Image} {
		if name != "" {
			n++
		}
	}
	return n
}

// VolumeStatus is the observed state.
type VolumeStatus struct {
	Identity  DeviceIdentity `json:"identity"`
	Ownership Ownership      `json:"ownership"`
	// MoveRequest is a planned move that a user requested and that the leader has yet to carry out.
	MoveRequest *MoveRequest `json:"moveRequest,omitempty"`
	// Move is the requested move that is in progress.
	Move *RequestedMove `json:"move,omitempty"`
	// Refusal states why the last request, a move or a rollback, was not carried out. The next request clears it.
	Refusal *Refusal `json:"moveRefusal,omitempty"`
	// MovedAt is the time of the last requested move that was begun, or that found the volume at its destination. Rebalancing
	// leaves such a volume where it is for RequestedMoveHolds.
	MovedAt time.Time `json:"movedAt,omitzero"`
	// RollBack is requested and not yet done. Until it is done, the volume is assigned to no gateway.
	RollBack *RollBackRequest `json:"rollBack,omitempty"`
	// Held lists, in plain words, the operations that were pending in the backup from which the store was restored. None is
	// carried out before an administrator confirms it. Empty: nothing is held.
	Held []string `json:"held,omitempty"`
	// SharesWith is the uid of the volume whose blocks this volume's RBD image still shares; empty: it shares none.
	SharesWith string `json:"sharesWith,omitempty"`
	// CapacityBytes is the capacity that hosts see. It lags behind the spec while the volume grows.
	CapacityBytes int64 `json:"capacityBytes"`
	// AllocatedBytes is the space that the volume uses in its pool, -1 if the pool cannot report it.
	AllocatedBytes int64       `json:"allocatedBytes"`
	Conditions     []Condition `json:"conditions,omitempty"`
}

// MoveRequest requests a planned move (R7).
type MoveRequest struct {
	// Gateway that is to own the volume, by number; 0: the gateway that placement prefers, other than the present owner.
	Gateway uint32    `json:"gateway,omitempty"`
	Since   time.Time `json:"since"`
}

// RequestedMove has begun. It ends when the volume has an owner again.
type RequestedMove struct {
	// To is the number of the gateway that was chosen.
	To uint32 `json:"to"`
	// Trouble is the last problem of this move; empty: none so far.
	Trouble string `json:"trouble,omitempty"`
}

// Refusal is a condition's reason and message.
type Refusal struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// RollBackRequest requests that a volume is rolled back to a snapshot.
type RollBackRequest struct {
	// Snapshot to which the volume is rolled back, by uid.
	Snapshot string    `json:"snapshot"`
	Since    time.Time `json:"since"`
}

// ReasonMoveRequested of a volume's Progressing condition: a user requested a move, which has not ended.
const ReasonMoveRequested = "MoveRequested"

// ReasonRollBackRequested of a volume's Progressing condition: a user requested a rollback, which has not ended.
const ReasonRollBackRequested = "RollBackRequested"

// Reasons of a volume's Ready condition when it should have an owner and has none.
const (
	// ReasonTakeoverPending: a gateway that is expected to succeed takes over.
	ReasonTakeoverPending = "TakeoverPending"
	// ReasonOwnerDead: the owner is gone, and no gateway can take over.
	ReasonOwnerDead = "OwnerDead"
)

// TakeoverPossible reports whether hosts of a volume without an owner should wait for one (R11). A volume that is being deleted
// or rolled back is not meant to have an owner.
func (v *Volume) TakeoverPossible() bool {
	return !v.Meta.Deleting() && v.Status.RollBack == nil && !v.Stranded()
}

// Stranded reports whether the leader has found that the volume has no owner and that no gateway can own it. Until the leader has
// found that, hosts wait.
func (v *Volume) Stranded() bool {
	switch v.notReady() {
	case ReasonOwnerDead, ReasonNoGateway, ReasonOpenFailed, ReasonImageMissing, ReasonPoolNotIdentified:
		return true
	}
	return false
}

// TakeoverPending reports whether the leader has found that the owner is gone and another gateway takes over.
func (v *Volume) TakeoverPending() bool { return v.notReady() == ReasonTakeoverPending }

// notReady returns the reason of the Ready condition if that is False; else it is empty.
func (v *Volume) notReady() string {
	for _, c := range v.Status.Conditions {
		if c.Type == ConditionReady && c.Status == ConditionFalse {
			return c.Reason
		}
	}
	return ""
}

// Metadata implements Object.
func (v *Volume) Metadata() *Meta { return &v.Meta }

// Kind implements Object.
func (*Volume) Kind() Kind { return KindVolume }

// StatusConditions implements Object.
func (v *Volume) StatusConditions() *[]Condition { return &v.Status.Conditions }

// SetDefaults implements Object.
func (v *Volume) SetDefaults() {
	if v.Spec.BlockSize == 0 {
		v.Spec.BlockSize = 512
	}
	if v.Spec.ReclaimPolicy == "" {
		v.Spec.ReclaimPolicy = ReclaimDelete
	}
}

// Validate implements Object.
func (v *Volume) Validate() Violations {
	found := v.Meta.Validate()
	found.reference("spec.pool", v.Spec.Pool, KindStoragePool)
	block := v.Spec.BlockSize
	if block != 512 && block != 4096 {
		found.Addf("spec.blockSize", "is %d; 512 and 4096 are possible", block)
	} else if v.Spec.SizeBytes%int64(block) != 0 {
		found.Addf("spec.sizeBytes", "is %d, not a multiple of the block size of %d", v.Spec.SizeBytes, block)
	}
	if v.Spec.SizeBytes < MinVolumeSize || v.Spec.SizeBytes > MaxVolumeSize {
		found.Addf("spec.sizeBytes", "is %d; 1 MiB (%d) to 64 TiB (%d) are possible",
			v.Spec.SizeBytes, int64(MinVolumeSize), int64(MaxVolumeSize))
	}
	if v.Spec.Source.count() > 1 {
		found.Add("spec.source", "names more than one of snapshot, volume and image; a volume has one source")
	}
	if p := v.Spec.ReclaimPolicy; p != ReclaimDelete && p != ReclaimRetain && p != ReclaimTrash {
		found.Addf("spec.reclaimPolicy", "is %q; Delete, Retain and, in an RBD pool, Trash are possible", p)
	}
	return append(found, v.Spec.QoS.validate()...)
}

func (q QoS) validate() Violations {
	var found Violations
	if q.IOPS < 0 || q.IOPSBurst < 0 || q.BytesPerSecond < 0 || q.BytesBurst < 0 {
		found.Add("spec.qos", "has a negative limit; 0 means unlimited")
	}
	if q.BytesPerSecond > 0 && q.BytesPerSecond < MinBytesPerSecond {
		found.Addf("spec.qos.bytesPerSecond", "is %d; 0 (unlimited) or at least %d are possible",
			q.BytesPerSecond, MinBytesPerSecond)
	}
	if q.IOPS == 0 && q.IOPSBurst > 0 {
		found.Add("spec.qos.iopsBurst", "has no iops to exceed; give spec.qos.iops, too")
	}
	if q.BytesPerSecond == 0 && q.BytesBurst > 0 {
		found.Add("spec.qos.bytesBurst", "has no rate to exceed; give spec.qos.bytesPerSecond, too")
	}
	return found
}

// ValidateUpdate returns what is invalid about the change from an earlier spec.
func (v *Volume) ValidateUpdate(from *Volume) Violations {
	var found Violations
	if v.Spec.Pool != from.Spec.Pool {
		found.immutable("spec.pool", from.Spec.Pool)
	}
	if v.Spec.BlockSize != from.Spec.BlockSize {
		found.immutable("spec.blockSize", from.Spec.BlockSize)
	}
	if v.Spec.Source != from.Spec.Source {
		found.immutable("spec.source", from.Spec.Source)
	}
	capacity := from.Status.CapacityBytes
	switch {
	case v.Spec.SizeBytes >= from.Spec.SizeBytes || capacity > 0 && v.Spec.SizeBytes >= capacity:
	case capacity > 0 && capacity < from.Spec.SizeBytes:
		found.Addf("spec.sizeBytes", "is %d, less than the %d that hosts see: a volume only grows; a growth that was not done yet can be "+
			"taken back down to that", v.Spec.SizeBytes, capacity)
	default:
		found.Addf("spec.sizeBytes", "is %d, but a volume only grows and this one has %d: make a new volume and copy",
			v.Spec.SizeBytes, from.Spec.SizeBytes)
	}
	return found
}
