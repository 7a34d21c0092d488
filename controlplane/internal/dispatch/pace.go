package dispatch

import "time"

const (
	// objectCost is the cost of each object of a gateway's state in every update, because the gateway verifies the digest of the
	// whole state. It was measured as 80 ns with 1,000 objects on an idle processor; during a failover the caches are shared.
	objectCost = 200 * time.Nanosecond
	// freeCost is the cost of updates of at most `few` objects before they are followed by a rest. So the updates of a single
	// move are sent at once, while those of a failover of hundreds are combined.
	freeCost = 20 * time.Millisecond
	few      = 4
	// updateRest is the ratio of the rest to the duration of updates, up to longRest, but at least leastRest: hosts wait while a
	// failover keeps both the gateway and this process busy.
	updateRest = 8
	leastRest  = 3
	longRest   = 50 * time.Millisecond
)

// pace computes the rest of a stream after each update.
type pace struct {
	owed time.Duration
	at   time.Time
}

// pauseAfter returns the rest after an update that ended now and took a time, of a state with `objects` objects, of which it sent
// `sent`.
func (p *pace) pauseAfter(now time.Time, took time.Duration, objects, sent int) time.Duration {
	p.owed = max(0, p.owed-now.Sub(p.at)/updateRest) + max(took, time.Duration(objects)*objectCost)
	free := time.Duration(0)
	if sent <= few {
		free = freeCost
	}
	// A delay that has another cause must not prolong the rest.
	p.owed, p.at = min(p.owed, free+longRest/updateRest), now
	return max(leastRest*took, (p.owed-free)*updateRest)
}
