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

// queue holds the keys that have to be looked at, each at most once however often it is added, so it is bounded by the number of
// objects. A key is never given to two workers at a time; added meanwhile, it is given out again afterwards.
type queue struct {
	mutex sync.Mutex
	wake  chan struct{}
	// ready are given out in this order, of each list the first first: see place.
	ready [places][]decide.Key
	// passed counts for each list the keys of others that were given out while one of its own was ready.
	passed [places]int
	state  map[decide.Key]*queued
	later  timetable
}

// The lists of what is ready.
const (
	// inHand: how a gateway is, or what one said of a volume that is on its way to it; a volume that has begun to change its
	// owner gets there before the next one begins.
	inHand = iota
	// inTurn is all else that may change who owns a volume.
	inTurn
	// behind is what follows from many changes of volumes, decided once for all that came together.
	behind
	places
)

// atMostPassed keys go before one that is ready.
const atMostPassed = 256

type queued struct {
	waiting, working, hurry bool
	failures                int
	// due is when it is to be looked at again, zero: not at all; at is its place in the timetable, -1: none.
	due time.Time
	key decide.Key
	at  int
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1), state: map[decide.Key]*queued{}} }

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

// hurry gives a key out before those that were added.
func (q *queue) hurry(keys ...decide.Key) { q.put(true, keys) }

func (q *queue) put(hurry bool, keys []decide.Key) {
	q.mutex.Lock()
	for _, key := range keys {
		e := q.entry(key)
		if hurry && !e.hurry {
			q.overtake(e)
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

// overtake gives a key a place before those that are in no hurry.
func (q *queue) overtake(e *queued) {
	listed := e.waiting && !e.working
	if listed {
		from := &q.ready[e.place()]
		*from = slices.Delete(*from, slices.Index(*from, e.key), slices.Index(*from, e.key)+1)
	}
	e.hurry = true
	if listed {
		q.line(e)
	}
}

// line puts a key that nobody works on where it is given out.
func (q *queue) line(e *queued) { q.ready[e.place()] = append(q.ready[e.place()], e.key) }

func (e *queued) place() int {
	if e.hurry {
		return inHand
	}
	if place, known := placeOfKind[e.key.Kind]; known {
		return place
	}
	return inTurn
}

// placeOfKind has the kinds that are not decided in their turn: a gateway's health concerns all its volumes, and nothing waits for the last three.
var placeOfKind = map[model.Kind]int{
	model.KindGateway: inHand, model.KindTarget: behind, model.KindSnapshot: behind, model.KindHost: behind,
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for a key. The worker calls done with it.
func (q *queue) next(ctx context.Context) (decide.Key, bool) {
	for {
		key, wait, ok := q.take(time.Now())
		if ok {
			q.ring() // there may be more for others
			return key, true
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return decide.Key{}, false
		case <-q.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (q *queue) take(now time.Time) (decide.Key, time.Duration, bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for len(q.later) > 0 && !q.later[0].due.After(now) {
		e := heap.Pop(&q.later).(*queued)
		e.due = time.Time{}
		q.push(e)
	}
	if list := q.choose(); list < places {
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

// choose says which list's turn it is; places: all are empty.
func (q *queue) choose() int {
	chosen := places
	for list := range places {
		if len(q.ready[list]) > 0 && (chosen == places || q.passed[list] >= atMostPassed) {
			chosen = list
		}
	}
	for list := range places {
		if list == chosen {
			q.passed[list] = 0
		} else if len(q.ready[list]) > 0 {
			q.passed[list]++
		}
	}
	return chosen
}

// done takes a key back. failed: it comes again after a while that doubles each time; else after the wait, 0: not by itself.
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

// timetable is a heap of keys by when they are due.
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
