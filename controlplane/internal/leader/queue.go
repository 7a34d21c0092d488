package leader

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// queue has the keys on which workers must decide. Each key is in it once, so the queue is bounded by the number of objects. A
// key is never given to two workers at a time. If it is added meanwhile, it is given out again afterwards.
type queue struct {
	mutex   sync.Mutex
	changed chan struct{}
	// ready has the keys in lists, by priority; each list is in order of arrival: see priority.
	ready [priorities][]decide.Key
	// passed counts, for each list, the keys of other lists that were given out while it was not empty.
	passed [priorities]int
	state  map[decide.Key]*queued
	later  timetable
}

// The lists of ready keys, in order of priority.
const (
	// urgent: a gateway's health, or a report on a volume for which the gateway waits. A volume that has begun to change its
	// owner completes that before the next one begins.
	urgent = iota
	// normal has all other keys that may change the owner of a volume.
	normal
	// background has keys that follow from many changes of volumes, so that one decision covers all of these.
	background
	priorities
)

// maxPassed is the number of keys of other lists that may precede a ready key.
const maxPassed = 256

type queued struct {
	waiting, working, hurry bool
	failures                int
	// due is the time of the next decision, zero: none; at is its index in the timetable, -1: none.
	due time.Time
	key decide.Key
	at  int
}

func newQueue() *queue {
	return &queue{changed: make(chan struct{}, 1), state: map[decide.Key]*queued{}}
}

func (q *queue) entry(key decide.Key) *queued {
	e := q.state[key]
	if e == nil {
		e = &queued{key: key, at: -1}
		q.state[key] = e
	}
	return e
}

// add gives a key out as soon as a worker is free.
func (q *queue) add(keys ...decide.Key) { q.put(false, keys) }

// hurry gives a key out before those that were added with add.
func (q *queue) hurry(keys ...decide.Key) { q.put(true, keys) }

func (q *queue) put(hurry bool, keys []decide.Key) {
	q.mutex.Lock()
	for _, key := range keys {
		e := q.entry(key)
		if hurry && !e.hurry {
			q.promote(e)
		}
		q.push(e)
	}
	q.mutex.Unlock()
	q.ring()
}

func (q *queue) push(e *queued) {
	if e.waiting {
		return
	}
	e.waiting = true
	if !e.working {
		q.line(e)
	}
}

// promote moves a key to a list of higher priority.
func (q *queue) promote(e *queued) {
	listed := e.waiting && !e.working
	if listed {
		from := &q.ready[e.priority()]
		*from = slices.Delete(*from, slices.Index(*from, e.key), slices.Index(*from, e.key)+1)
	}
	e.hurry = true
	if listed {
		q.line(e)
	}
}

// line appends a key that no worker has to its list.
func (q *queue) line(e *queued) { q.ready[e.priority()] = append(q.ready[e.priority()], e.key) }

func (e *queued) priority() int {
	if e.hurry {
		return urgent
	}
	if priority, known := priorityOfKind[e.key.Kind]; known {
		return priority
	}
	return normal
}

// priorityOfKind has the kinds without normal priority. A gateway's health concerns all its volumes. No volume waits for the kinds
// with background priority.
var priorityOfKind = map[model.Kind]int{
	model.KindGateway: urgent, model.KindTarget: background, model.KindSnapshot: background, model.KindHost: background,
}

func (q *queue) ring() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// next waits for a key. The worker must call done with it.
func (q *queue) next(ctx context.Context) (decide.Key, bool) {
	for {
		key, wait, ok := q.takeDue(time.Now())
		if ok {
			q.ring() // there may be more keys for other workers
			return key, true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return decide.Key{}, false
		case <-q.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (q *queue) takeDue(now time.Time) (decide.Key, time.Duration, bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for len(q.later) > 0 && !q.later[0].due.After(now) {
		e := heap.Pop(&q.later).(*queued)
		e.due = time.Time{}
		q.push(e)
	}
	if list := q.choose(); list < priorities {
		e := q.state[q.ready[list][0]]
		q.ready[list] = q.ready[list][1:]
		e.waiting, e.working, e.hurry = false, true, false
		return e.key, 0, true
	}
	wait := time.Hour
	if len(q.later) > 0 {
		wait = q.later[0].due.Sub(now)
	}
	return decide.Key{}, wait, false
}

// choose returns the list from which the next key is taken; priorities: all are empty.
func (q *queue) choose() int {
	chosen := priorities
	for list := range priorities {
		if len(q.ready[list]) > 0 && (chosen == priorities || q.passed[list] >= maxPassed) {
			chosen = list
		}
	}
	for list := range priorities {
		if list == chosen {
			q.passed[list] = 0
		} else if len(q.ready[list]) > 0 {
			q.passed[list]++
		}
	}
	return chosen
}

// done returns a key to the queue. If it failed, it is due again after a pause that doubles each time; else after wait, 0: not by
// itself.
func (q *queue) done(key decide.Key, failed bool, wait time.Duration) {
	q.mutex.Lock()
	e := q.state[key]
	e.working = false
	if failed {
		e.failures++
		wait = decide.Backoff(e.failures)
	} else {
		e.failures = 0
	}
	if e.at >= 0 {
		heap.Remove(&q.later, e.at)
		e.due = time.Time{}
	}
	if wait > 0 {
		e.due = time.Now().Add(wait)
		heap.Push(&q.later, e)
	}
	if e.waiting {
		q.line(e)
	} else if wait == 0 {
		delete(q.state, key)
	}
	q.mutex.Unlock()
	q.ring()
}

// timetable is a heap of keys, ordered by the time at which they are due.
type timetable []*queued

func (t timetable) Len() int           { return len(t) }
func (t timetable) Less(i, j int) bool { return t[i].due.Before(t[j].due) }
func (t timetable) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].at, t[j].at = i, j
}

// Push implements heap.Interface.
func (t *timetable) Push(x any) {
	e := x.(*queued)
	e.at = len(*t)
	*t = append(*t, e)
}

// Pop implements heap.Interface.
func (t *timetable) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	last.at = -1
	return last
}
