package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Bounds of the leader's loop. None of them is a fence: they say when to give up waiting, never who may write (R2).
const (
	// SilentLimit is how long peers must have heard nothing of a gateway without a stream for it to be dead (R1).
	SilentLimit = 4 * time.Second
	// ReconnectGrace is how long a stream that was gone before the leader began to look may take to come back: after an
	// outage of the control plane nobody is dead for mere absence (R1).
	ReconnectGrace = 10 * time.Second
	// MaxDeadNodes is how many nodes may lose gateways to a verdict within DeathWindow. More at once is rather the
	// control plane's own view that fails. A node that is dead already counts once.
	MaxDeadNodes = 2
	DeathWindow  = 30 * time.Second
	// TakeoverShare is how long a volume that hosts use, on its way to its next owner, keeps those waiting at most that nobody uses.
	TakeoverShare = 100 * time.Millisecond
	// NoStreamTold is how long an owner has been without a stream before its volumes tell so: mostly it is dead and replaced, or
	// back, by then, and a failover of many volumes has no time for as many writes that are wrong a moment later.
	NoStreamTold = 2 * time.Second
	// MoveTimeout is how long a planned move may take until it is called off (R7).
	MoveTimeout = 5 * time.Second
	// AcquireTimeout is how long a candidate may take for the lock before another one is asked: it asks a holder, and
	// kills one that does not answer for 1 s (R2).
	AcquireTimeout = 5 * time.Second
	// OpenTimeout is how long an owner may take to open.
	OpenTimeout = 15 * time.Second
	// FenceOpening is how long an owner in Ceph, which has no lock that another could ask for, may take before it is shut
	// out for another one.
	FenceOpening = 2 * time.Minute
	// BlocklistFor is how long a client of Ceph that was shut out stays so: nobody knows how long its process sleeps. An entry
	// costs the cluster's map some 50 bytes.
	BlocklistFor = 10 * 365 * 24 * time.Hour
	MinBlocklist = 365 * 24 * time.Hour
	// ListImagesEvery is between two looks for images that no volume has.
	ListImagesEvery = time.Hour
	// ListMissingEvery is between two lists of images while some are missing.
	ListMissingEvery = time.Minute
	// MinRetry doubles with every failure of a volume at a gateway up to MaxRetry.
	MinRetry = time.Second
	MaxRetry = time.Minute
	// RequestedMoveHolds is how long a volume that somebody asked to be moved stays where it is, unless it has to leave.
	RequestedMoveHolds = time.Hour
	// DrainMoves and RebalanceMoves bound how many volumes move at a time from a gateway that drains, and in the
	// whole cluster where nothing forces a move.
	DrainMoves     = 8
	RebalanceMoves = 2
	// StayRetry is between two looks for a way out for a volume that has to leave its owner and cannot, and at what keeps a gateway
	// from being drained.
	StayRetry = 3 * time.Second
	// SessionGrace is how long a session may be beyond its host's limit: one that is lost counts until its gateway finds out,
	// which takes 3 s (R6), and whoever took its place is no surplus.
	SessionGrace = 5 * time.Second
	// LeaveTimeout is how long a gateway that leaves a path set waits for sessions to move to portals that hosts are shown.
	// Then it leaves, and asks who is left to log out.
	LeaveTimeout = 30 * time.Second
	// RebalancePause is between two sessions of an initiator to a target that are asked to move: the first has found its new
	// portal before the next one leaves. It doubles each time up to MaxRebalancePause.
	RebalancePause    = 5 * time.Second
	MaxRebalancePause = 10 * time.Minute
	// MaxRebalanced sessions are asked to move within RebalanceWindow in the whole cluster: each is a logout and a login, and
	// then the host looks at all LUNs anew.
	MaxRebalanced   = 32
	RebalanceWindow = time.Second
	// LoadMemory is over how long a volume's load is averaged: what lasts for less moves little, what lasts moves volumes
	// within minutes. A burst that moved one would be over when the move is done, and the move back as useless.
	LoadMemory = 5 * time.Minute
	// MaxLoadGap between two reports of a load makes no rate of them: a clock was set, or nobody listened.
	MaxLoadGap = 4 * model.LoadsInterval
	// UsedFor is how long a volume counts as in use after it was read or written last.
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
