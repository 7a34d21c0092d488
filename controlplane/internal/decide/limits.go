package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Bounds of the leader's decisions. None of them is a fence: they limit waiting, and never decide which gateway may write (R2).
const (
	// SilentLimit is the time for which peers must not have heard a gateway without a stream before it is dead (R1).
	SilentLimit = 4 * time.Second
	// ReconnectGrace is the time that a stream has to return if it was absent when the leader's term began. After an outage of
	// the control plane, no gateway is dead merely because it is absent (R1).
	ReconnectGrace = 10 * time.Second
	// MaxDeadNodes is the number of nodes of which gateways may be declared dead within DeathWindow. If more seem dead, the
	// control plane's own view is more likely at fault. A node counts once.
	MaxDeadNodes = 2
	DeathWindow  = 30 * time.Second
	// TakeoverShare is the longest time for which a volume that hosts use, while it gets its next owner, delays volumes that no
	// host uses.
	TakeoverShare = 100 * time.Millisecond
	// NoStreamReportDelay is the time after which the volumes of an owner without a stream report that. By then the owner is usually
	// replaced or back. A failover of many volumes must not spend time on writes that are soon outdated.
	NoStreamReportDelay = 2 * time.Second
	// MoveTimeout is the time after which a planned move is cancelled (R7).
	MoveTimeout = 5 * time.Second
	// AcquireTimeout is the time that a candidate has to take the lock before another one is asked. It asks the holder, and kills
	// a holder that does not answer for 1 s (R2).
	AcquireTimeout = 5 * time.Second
	// OpenTimeout is the time that an owner has to open a volume.
	OpenTimeout = 15 * time.Second
	// FenceOpening is the time that an owner in Ceph has to open a volume before it is fenced and replaced. In Ceph there is no
	// lock for which another gateway could ask.
	FenceOpening = 2 * time.Minute
	// BlocklistFor is the duration of a blocklist entry of a fenced Ceph client, because its process may be suspended for any
	// time. An entry costs about 50 bytes in the cluster's map.
	BlocklistFor = 10 * 365 * 24 * time.Hour
	MinBlocklist = 365 * 24 * time.Hour
	// ListImagesEvery is the interval between two checks for images without a volume.
	ListImagesEvery = time.Hour
	// ListMissingEvery is the interval between two lists of images while some are missing.
	ListMissingEvery = time.Minute
	// ConfirmImagesAfter is the time from a list with an image that is orphaned or missing for the first time to the next list.
	ConfirmImagesAfter = 5 * time.Second
	// MinRetry doubles with every failure of a volume at a gateway up to MaxRetry.
	MinRetry = time.Second
	MaxRetry = time.Minute
	// TakeoverAttempts is the number of failures of a volume at a gateway after which hosts get Unavailable instead of
	// Transitioning (R11). The pauses between these attempts are shorter than the time for which hosts wait (Linux: 60 s).
	TakeoverAttempts = 3
	// RequestedMoveHolds is the time for which a volume stays where a user's request has moved it, unless it has to leave.
	RequestedMoveHolds = time.Hour
	// DrainMoves bounds the concurrent moves from a gateway that drains. RebalanceMoves bounds the concurrent optional moves in
	// the whole cluster.
	DrainMoves     = 8
	RebalanceMoves = 2
	// StayRetry is the interval between two checks of a volume that has to leave its owner and cannot, and of a gateway that
	// cannot be drained.
	StayRetry = 3 * time.Second
	// SessionGrace is the time for which a session may exceed its host's limit. A lost session counts until its gateway detects
	// the loss, which takes 3 s (R6), and the session that replaced it is no surplus.
	SessionGrace = 5 * time.Second
	// LeaveTimeout is the time for which a gateway that leaves a path set waits for sessions to move to portals that hosts are
	// shown. Then it leaves, and asks the remaining sessions to log out.
	LeaveTimeout = 30 * time.Second
	// RebalancePause is the pause between two sessions of an initiator to a target that are asked to move, so that the first has
	// found its new portal before the next one leaves. It doubles each time, up to MaxRebalancePause.
	RebalancePause    = 5 * time.Second
	MaxRebalancePause = 10 * time.Minute
	// MaxRebalanced bounds the sessions in the whole cluster that are asked to move within RebalanceWindow. Each is a logout and
	// a login, after which the host scans all LUNs again.
	MaxRebalanced   = 32
	RebalanceWindow = time.Second
	// LoadMemory is the time over which a volume's load is averaged. A short load moves little; a lasting one moves volumes
	// within minutes. A burst would be over before the move that it caused, and the move back would be as useless.
	LoadMemory = 5 * time.Minute
	// MaxLoadGap is the longest time between two load reports from which a rate is computed. A longer one means that a clock was
	// set, or that no replica received reports.
	MaxLoadGap = 4 * model.LoadsInterval
	// UsedFor is the time for which a volume counts as in use after its last read or write.
	UsedFor = model.UsedFor
)

// Backoff returns the pause after this number of failures.
func Backoff(count int) time.Duration {
	wait := MinRetry
	for ; count > 1 && wait < MaxRetry; count-- {
		wait *= 2
	}
	return min(wait, MaxRetry)
}
