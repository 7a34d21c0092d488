package dispatch

import "time"

const (
	// objectCost is what each object of its state costs a gateway with every update: it proves the whole by its digest. Measured
	// with 1,000 of them: 80 ns undisturbed; during a failover other work has the processor's caches.
	objectCost = 200 * time.Nanosecond
	// freeCost is what updates of no more than few objects may cost before they rest: those of one move are told at once, while
	// of a failover of hundreds many are told together.
	freeCost = 20 * time.Millisecond
	few      = 4
	// updateRest is how many times as long as they took updates rest, up to longRest, but never less than leastRest times: hosts
	// wait while a failover keeps both the gateway and this process busy.
	updateRest = 8
	leastRest  = 3
	longRest   = 50 * time.Millisecond
)

// pace says how long a stream rests after each update.
type pace struct {
	owed time.Duration
	at   time.Time
}

// rest is for an update that ended now, after so long, of a state of so many objects, of which it sent some.
func (p *pace) rest(now time.Time, took time.Duration, objects, sent int) time.Duration {
	p.owed = max(0, p.owed-now.Sub(p.at)/updateRest) + max(took, time.Duration(objects)*objectCost)
	free := time.Duration(0)
	if sent <= few {
		free = freeCost
	}
	// What took long for another reason is no cause to wait longer.
	p.owed, p.at = min(p.owed, free+longRest/updateRest), now
	return max(leastRest*took, (p.owed-free)*updateRest)
}
