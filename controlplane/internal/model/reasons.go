package model

// Reasons of conditions that package decide stores, and from which package findings computes what is wrong.
const (
	// ReasonMediumFailed: commands of hosts end with NOT READY.
	ReasonMediumFailed = "MediumFailed"
	// ReasonMediumMisplaced: hosts use the medium, but the next opening will fail.
	ReasonMediumMisplaced = "MediumMisplaced"
	// ReasonMediumStuck: commands of hosts wait for the medium.
	ReasonMediumStuck = "MediumStuck"
	// ReasonMediumErrors: commands of hosts end with errors of the medium.
	ReasonMediumErrors = "MediumErrors"
	// ReasonPoolNotIdentified: the storage that gateways find in place of the pool may be other storage.
	ReasonPoolNotIdentified = "PoolNotIdentified"
	// ReasonImageMissing: the volume has an image, but the pool does not contain it.
	ReasonImageMissing = "ImageMissing"
	// ReasonOpenFailed: a gateway could not open the volume.
	ReasonOpenFailed = "OpenFailed"
	// ReasonNoGateway: no gateway that can do what is wanted has a stream.
	ReasonNoGateway = "NoGateway"
	// ReasonTakenOut: a device with data was removed from its pool.
	ReasonTakenOut = "DeviceTakenOut"
	// ReasonDrainBlocked: volumes or targets cannot leave a gateway that drains.
	ReasonDrainBlocked = "DrainBlocked"
	// ReasonFencingRateLimited: a gateway is not declared dead, because too many nodes were just declared dead (R1).
	ReasonFencingRateLimited = "FencingRateLimited"
	// ReasonNotApplied: a gateway refused a part of its desired state.
	ReasonNotApplied = "NotApplied"
	// ReasonPeersLost: another gateway cannot forward commands to a gateway that serves.
	ReasonPeersLost = "PeersLost"
	// ReasonNoStream: the owner of a volume has no stream to the control plane.
	ReasonNoStream = "NoStream"
	// ReasonJobFailed: a job has failed and is tried again.
	ReasonJobFailed = "JobFailed"
	// ReasonJobUnsupported: the pool can never execute a job.
	ReasonJobUnsupported = "Unsupported"
	// ReasonMoveRefused, ReasonMoveFailed and ReasonRollBackFailed: the last request was not carried out.
	ReasonMoveRefused    = "MoveRefused"
	ReasonMoveFailed     = "MoveFailed"
	ReasonRollBackFailed = "RollBackFailed"
	// ReasonOwnerNotServing: hosts or other gateways do not reach the owner of a volume, and no other gateway can own it.
	ReasonOwnerNotServing = "OwnerNotServing"
	// ReasonFewerPaths: fewer gateways with a stream export a target than it requires.
	ReasonFewerPaths = "FewerPaths"
	// ReasonNearlyFull: a pool has reached its warning threshold.
	ReasonNearlyFull = "NearlyFull"
	// ReasonDevicesUnusable: devices of a pool neither hold a volume nor can hold one.
	ReasonDevicesUnusable = "DevicesUnusable"
)
