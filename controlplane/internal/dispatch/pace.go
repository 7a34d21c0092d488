package dispatch

import "time"

const (
	// objectCost is what each object of its state costs a gateway with every update: it proves the whole by its digest.
	objectCost = time.Microsecond
	// freeCost is what updates may cost before they have to rest: the few of one move are told at once, of a failover of
	// hundreds many are told together.
	freeCost = 8 * time.Millisecond
	// updateRest is how many times as long as they took updates rest then, up to longRest, but never less than leastRest
	// times: hosts wait while a failover keeps both the gateway and this process busy.
	updateRest = 8
	leastRest  = 3
	longRest   = 50 * time.Millisecond
)

// pace says how long a stream rests after each update.
type pace struct {
	owed time.Duration
	at   time.Time
}

// rest is for an update that ended now, after so long, of a state of so many objects.
func (p *pace) rest(now time.Time, took time.Duration, objects int) time.Duration {
	p.owed = max(0, p.owed-now.Sub(p.at)/updateRest) + max(took, time.Duration(objects)*objectCost)
	// What took long for another reason is no cause to wait longer.
	p.owed, p.at = min(p.owed, freeCost+longRest/updateRest), now
	return max(leastRest*took, (p.owed-freeCost)*updateRest)
}
