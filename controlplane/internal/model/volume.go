package model

import (
	"slices"
	"time"
)

// Limits of a volume, in bytes.
const (
	MinVolumeSize = 1 << 20
	MaxVolumeSize = 64 << 40
	// MinBytesPerSecond keeps a limited volume usable: below it one large command would wait for minutes.
	MinBytesPerSecond = 1 << 20
)

// ReclaimPolicy says what becomes of data when its object is deleted.
type ReclaimPolicy string

// The policies.
const (
	ReclaimDelete ReclaimPolicy = "Delete"
	ReclaimRetain ReclaimPolicy = "Retain"
	// ReclaimTrash moves an RBD image to its pool's trash, where it can be restored for TrashKeeps.
	ReclaimTrash ReclaimPolicy = "Trash"
)

// TrashKeeps is how long what went to a pool's trash can be restored.
const TrashKeeps = 7 * 24 * time.Hour

// Volume is a virtual disk in a storage pool.
type Volume struct {
	Meta   Meta         `json:"meta"`
	Spec   VolumeSpec   `json:"spec"`
	Status VolumeStatus `json:"status"`
}

// VolumeSpec is what is wanted.
type VolumeSpec struct {
	// Pool is immutable.
	Pool string `json:"pool"`
	// SizeBytes is a multiple of the block size, MinVolumeSize…MaxVolumeSize. It only grows; a growth that was not done yet can be
	// taken back, down to Status.CapacityBytes.
	SizeBytes int64 `json:"sizeBytes"`
	// BlockSize is the logical block size in bytes, 512 or 4096; immutable.
	BlockSize int32 `json:"blockSize"`
	// WriteCache makes the LUN report a volatile write cache (SBC-4 §6.5.6, WCE).
	WriteCache    bool          `json:"writeCache"`
	QoS           QoS           `json:"qos,omitzero"`
	Source        VolumeSource  `json:"source,omitzero"`
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy"`
}

// QoS limits a volume at its owner; zero is unlimited. Resolved has the default of a burst that is not given; no other code interprets a
// burst of zero.
type QoS struct {
	IOPS           int64 `json:"iops,omitempty"`
	IOPSBurst      int64 `json:"iopsBurst,omitempty"`
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	BytesBurst     int64 `json:"bytesBurst,omitempty"`
}

// Resolved are the limits with the default of each burst: what one second permits.
func (q QoS) Resolved() QoS {
	if q.IOPSBurst == 0 {
		q.IOPSBurst = q.IOPS
	}
	if q.BytesBurst == 0 {
		q.BytesBurst = q.BytesPerSecond
	}
	return q
}

// VolumeSource is what a volume is made from: nothing, a snapshot, a volume, or an image that becomes the volume's.
// Immutable.
type VolumeSource struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
	// Image in the RBD pool that nobody uses; it is renamed.
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

// VolumeStatus is what is observed.
type VolumeStatus struct {
	Identity  DeviceIdentity `json:"identity"`
	Ownership Ownership      `json:"ownership"`
	// MoveRequest is a planned move that somebody asked for and the leader has yet to carry out.
	MoveRequest *MoveRequest `json:"moveRequest,omitempty"`
	// Move is the requested one that is being carried out.
	Move *RequestedMove `json:"move,omitempty"`
	// Refusal says why what was requested last, a move or a rollback, came to nothing; the next request forgets it.
	Refusal *Refusal `json:"moveRefusal,omitempty"`
	// MovedAt is when a move was requested last that was begun, or found the volume where it was to go: rebalancing leaves alone what somebody has placed, for RequestedMoveHolds.
	MovedAt time.Time `json:"movedAt,omitzero"`
	// RollBack is asked for and has yet to be done; until then nobody is given the volume.
	RollBack *RollBackRequest `json:"rollBack,omitempty"`
	// Held are operations that were pending in the backup that the store was restored from, in plain words: none is carried out before
	// an administrator confirms them. Empty: nothing is held.
	Held []string `json:"held,omitempty"`
	// SharesWith is the uid of the volume whose blocks this one's RBD image still shares; empty: it stands alone.
	SharesWith string `json:"sharesWith,omitempty"`
	// CapacityBytes is what hosts see; it lags the spec while the volume grows.
	CapacityBytes int64 `json:"capacityBytes"`
	// AllocatedBytes is what the volume takes in its pool, -1 where the pool cannot tell.
	AllocatedBytes int64       `json:"allocatedBytes"`
	Conditions     []Condition `json:"conditions,omitempty"`
}

// MoveRequest asks for a planned move (R7).
type MoveRequest struct {
	// Gateway to own the volume by number; 0: whichever placement prefers other than the present owner.
	Gateway uint32    `json:"gateway,omitempty"`
	Since   time.Time `json:"since"`
}

// RequestedMove has begun, and ends once the volume has an owner again.
type RequestedMove struct {
	// To is the gateway that was chosen, by number.
	To uint32 `json:"to"`
	// Trouble is what went wrong last on the way; empty: nothing so far.
	Trouble string `json:"trouble,omitempty"`
}

// Refusal is a condition's reason and message.
type Refusal struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// RollBackRequest asks that a volume be made what it was at a snapshot.
type RollBackRequest struct {
	// Snapshot by uid.
	Snapshot string    `json:"snapshot"`
	Since    time.Time `json:"since"`
}

// Metadata implements Object.
// ReasonMoveRequested of a volume's Progressing condition: somebody asked for a move, which is not over.
const ReasonMoveRequested = "MoveRequested"

// ReasonRollBackRequested of a volume's Progressing condition: somebody asked for a rollback, which is not over.
const ReasonRollBackRequested = "RollBackRequested"

// ReasonOwnerDead of a volume's Ready condition: its owner is gone, and nobody who could take over is there.
const ReasonOwnerDead = "OwnerDead"

// Stranded says that the leader has found the owner gone and nobody to take over: hosts would wait in vain (R11).
func (v *Volume) Stranded() bool {
	return v.Status.Ownership.State == Owned && slices.ContainsFunc(v.Status.Conditions, func(c Condition) bool {
		return c.Type == ConditionReady && c.Status == ConditionFalse && c.Reason == ReasonOwnerDead
	})
}

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

// ValidateUpdate says what is wrong with a change from an earlier spec.
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
