package orchestrator

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// queue holds the keys that have to be looked at, each at most once however often it is added, so it is bounded by the number of
// objects. A key is never given to two workers at a time; added meanwhile, it is given out again afterwards.
type queue struct {
	mutex sync.Mutex
	wake  chan struct{}
	ready []Key
	state map[Key]*queued
	later timetable
}

type queued struct {
	waiting, working bool
	failures         int
	// due is when it is to be looked at again, zero: not at all; at is its place in the timetable, -1: none.
	due time.Time
	key Key
	at  int
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1), state: map[Key]*queued{}} }

func (q *queue) entry(key Key) *queued {
	e := q.state[key]
	if e == nil {
		e = &queued{key: key, at: -1}
		q.state[key] = e
	}
	return e
}

// add gives a key out as soon as a worker is free.
func (q *queue) add(keys ...Key) {
	q.mutex.Lock()
	for _, key := range keys {
		q.push(q.entry(key))
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
		q.ready = append(q.ready, e.key)
	}
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for a key. The worker calls done with it.
func (q *queue) next(ctx context.Context) (Key, bool) {
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
			return Key{}, false
		case <-q.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (q *queue) take(now time.Time) (Key, time.Duration, bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for len(q.later) > 0 && !q.later[0].due.After(now) {
		e := heap.Pop(&q.later).(*queued)
		e.due = time.Time{}
		q.push(e)
	}
	if len(q.ready) > 0 {
		e := q.state[q.ready[0]]
		q.ready = q.ready[1:]
		e.waiting, e.working = false, true
		return e.key, 0, true
	}
	wait := time.Hour
	if len(q.later) > 0 {
		wait = q.later[0].due.Sub(now)
	}
	return Key{}, wait, false
}

// done takes a key back. failed: it comes again after a while that doubles each time; else after the wait, 0: not by itself.
func (q *queue) done(key Key, failed bool, wait time.Duration) {
	q.mutex.Lock()
	e := q.state[key]
	e.working = false
	if failed {
		e.failures++
		wait = backoff(e.failures)
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
		q.ready = append(q.ready, key)
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
