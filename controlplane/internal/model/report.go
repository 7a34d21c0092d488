package model

import "time"

const (
	// LoadsInterval is between two load reports of a gateway, unless a volume comes into use.
	LoadsInterval = 15 * time.Second
	// UsedFor is how long a volume counts as in use after its last read or write.
	UsedFor = time.Minute
)

// GatewayConnection is the stream of a gateway's process to a replica.
type GatewayConnection struct {
	// Gateway is its name, Ref its number and incarnation. The store sets the number.
	Gateway string     `json:"gateway"`
	Ref     GatewayRef `json:"ref"`
	Replica string     `json:"replica,omitempty"`
	Node    string     `json:"node,omitempty"`
	// BootID, PID and PIDStartTime identify the process. Another gateway may kill it through a pidfd (R2, local).
	BootID       string    `json:"bootID,omitempty"`
	PID          int64     `json:"pid,omitempty"`
	PIDStartTime uint64    `json:"pidStartTime,omitempty"`
	Version      string    `json:"version,omitempty"`
	Capabilities []string  `json:"capabilities,omitempty"`
	Since        time.Time `json:"since"`
}

// ObservedState is the state of a volume at a gateway.
type ObservedState string

// The states, as in gateway_stream.proto.
const (
	VolumeServing  ObservedState = "Serving"
	VolumeReleased ObservedState = "Released"
	VolumeFailed   ObservedState = "Failed"
	VolumeFenced   ObservedState = "Fenced"
	VolumeLocked   ObservedState = "Locked"
)

// VolumeObservation is a gateway's report about a volume.
type VolumeObservation struct {
	Epoch uint64 `json:"epoch"`
	// Order that the gateway carried out (Ownership.Order).
	Order  uint64        `json:"order"`
	State  ObservedState `json:"state"`
	Reason string        `json:"reason,omitempty"`
	// CapacityBytes is 0 if unknown, AllocatedBytes -1.
	CapacityBytes  int64 `json:"capacityBytes"`
	AllocatedBytes int64 `json:"allocatedBytes"`
	// MediumProblem describes a problem of the medium of a served volume. Empty: none is known.
	MediumProblem string `json:"mediumProblem,omitempty"`
	// MediumNotReady: the gateway answers medium access commands with NOT READY.
	MediumNotReady bool `json:"mediumNotReady,omitempty"`
	// MediumStuck: the medium completes none of the commands of hosts for 1.4 s, or one of them takes more than 10 s. They wait.
	MediumStuck bool `json:"mediumStuck,omitempty"`
	// MediumErrors: commands of hosts ended with errors of the medium a short time ago.
	MediumErrors bool `json:"mediumErrors,omitempty"`
}

// VolumeReport is a stored VolumeObservation. There is one for each volume and gateway.
type VolumeReport struct {
	UID     string     `json:"uid"`
	Gateway GatewayRef `json:"gateway"`
	VolumeObservation
}

// Reach is the result of a gateway's attempt to reach another gateway.
type Reach string

// The results.
const (
	PeerConnected Reach = "Connected"
	PeerRefused   Reach = "Refused"
	PeerSilent    Reach = "Silent"
)

// PeerReport states whether a gateway reaches another one over the forwarding network. There is one for each pair.
type PeerReport struct {
	Reporter GatewayRef `json:"reporter"`
	Peer     GatewayRef `json:"peer"`
	Reach    Reach      `json:"reach"`
	// Silent is the time since the reporter received anything from the peer, by the reporter's clock.
	Silent time.Duration `json:"silent,omitempty"`
	// Refusal is why the peer refuses the reporter's login. Its process answers, so Reach is Connected, which never counts towards a
	// death (R1); a leader of an earlier version, which does not know this field, decides the same.
	Refusal string `json:"refusal,omitempty"`
}

// Forwards reports whether the reporter can forward commands to the peer.
func (r PeerReport) Forwards() bool { return r.Reach == PeerConnected && r.Refusal == "" }

// PoolReport is a gateway's report about a storage pool. There is one for each pool and gateway.
type PoolReport struct {
	UID                string     `json:"uid"`
	Gateway            GatewayRef `json:"gateway"`
	CapacityBytes      int64      `json:"capacityBytes"`
	UsedBytes          int64      `json:"usedBytes"`
	SnapshotsSupported bool       `json:"snapshotsSupported"`
	// Problem is empty if the pool is usable.
	Problem string `json:"problem,omitempty"`
	// UnusableDevices of the pool, each with the reason and the remedy.
	UnusableDevices []string `json:"unusableDevices,omitempty"`
	// TakenOut are devices with data that were removed from the pool, by the location of the data.
	TakenOut map[string]string `json:"takenOut,omitempty"`
	// Marker that the gateway found or wrote, and the adoptions that it counts. Empty: none.
	Marker    string `json:"marker,omitempty"`
	Adoptions uint32 `json:"adoptions,omitempty"`
	// Unidentified: according to Problem, the storage may not be that of the pool.
	Unidentified bool `json:"unidentified,omitempty"`
	// MaxImageBytes is the largest possible size of an image. 0: unknown.
	MaxImageBytes int64 `json:"maxImageBytes,omitempty"`
	// ListsImages: the gateway supports ListImages in this pool. Gateways of earlier versions support it in pools of Ceph and of devices,
	// and do not set this.
	ListsImages bool `json:"listsImages,omitempty"`
}

// VolumeLoad counts the commands and bytes of a volume since the gateway opened it.
type VolumeLoad struct {
	UID      string `json:"uid"`
	Commands uint64 `json:"commands"`
	Bytes    uint64 `json:"bytes"`
}

// LoadReport is the load of a gateway. There is one for each gateway.
type LoadReport struct {
	Gateway      GatewayRef `json:"gateway"`
	Sessions     uint32     `json:"sessions"`
	BusyPermille uint32     `json:"busyPermille"`
	// AppliedVersion is the version of the desired state that the gateway applied last.
	AppliedVersion uint64       `json:"appliedVersion,omitempty"`
	Volumes        []VolumeLoad `json:"volumes,omitempty"`
	// At is the time at which the replica received the report. Two reports of the same incarnation give rates.
	At time.Time `json:"at"`
}

// AppliedReport is the result of a gateway that applied an object of its desired state. There is one for each target, and one for
// each volume that the gateway refused. Everything else that it refused is in one report of kind Gateway.
type AppliedReport struct {
	Kind    Kind       `json:"kind"`
	UID     string     `json:"uid"`
	Gateway GatewayRef `json:"gateway"`
	// Export of the target that the gateway applied (Target.Export). Empty: it has not applied the present one.
	Export string `json:"export,omitempty"`
	// Refused is the reason why the gateway refused the object, or empty.
	Refused string `json:"refused,omitempty"`
	// ClosedPortals, of a Gateway, is the number of its portals that it could not open. ClosedForwarding is why it could not open its
	// port for other gateways; empty: it is open.
	ClosedPortals    int    `json:"closedPortals,omitempty"`
	ClosedForwarding string `json:"closedForwarding,omitempty"`
}

// Observed is one stored report. Exactly one of the pointers is set.
type Observed struct {
	// Version is the record's revision in the store. A later report has a greater version, whichever replica wrote it.
	Version    int64
	Connection *GatewayConnection
	Volume     *VolumeReport
	Peer       *PeerReport
	Pool       *PoolReport
	Load       *LoadReport
	Applied    *AppliedReport
}
