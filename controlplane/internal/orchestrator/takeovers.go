package orchestrator

import (
	"cmp"
	"container/heap"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// takeovers are the volumes that are on their way from an owner that was lost to the next one. Each takes several steps, and what takes
// time is the work for all of them: were all begun at once, each step would be made for all before the next one is for any, and hosts
// would wait for the first volume nearly as long as for the last. So a few go first, those whose hosts give the most commands, and as
// they arrive more and more set out, until as many are under way as keep every part of it busy. None holds up others for longer than
// TakeoverShare, however long its own way is (R15).
type takeovers struct {
	// first is how many are under way at first, and one more may be for each that arrived since there were none.
	first, arrived int
	// begun says since when, by the volume's name; order is the same in time's order, and has those that arrived, too.
	begun map[string]time.Time
	order []begun
	// waiting have to, the busiest first; listed are the same by name.
	waiting lineup
	listed  map[string]*waits
}

type begun struct {
	name string
	at   time.Time
}

type waits struct {
	name string
	rate float64
	at   int
}

func newTakeovers() takeovers {
	return takeovers{first: FirstTakeovers, begun: map[string]time.Time{}, listed: map[string]*waits{}}
}

// reset forgets all; those that wait ask for their turns again.
func (t *takeovers) reset() {
	first := t.first
	*t = newTakeovers()
	t.first = first
}

// turn says that it is a volume's turn (0), or for how long it is not even if none arrives.
func (t *takeovers) turn(name string, rate float64, now time.Time) time.Duration {
	t.expire(now)
	_, on := t.begun[name]
	switch {
	case on:
		return 0
	case len(t.begun) < t.first+t.arrived:
		t.leave(name)
		t.begun[name] = now
		t.order = append(t.order, begun{name, now})
		return 0
	case t.listed[name] == nil:
		w := &waits{name: name, rate: rate}
		t.listed[name] = w
		heap.Push(&t.waiting, w)
	}
	return TakeoverShare - now.Sub(t.order[0].at)
}

// expire forgets those whose time is over.
func (t *takeovers) expire(now time.Time) {
	for len(t.order) > 0 {
		first := t.order[0]
		at, on := t.begun[first.name]
		if on = on && at.Equal(first.at); on && now.Sub(at) < TakeoverShare {
			return
		}
		if on {
			delete(t.begun, first.name)
		}
		t.order = t.order[1:]
	}
}

// ended takes note that a volume has arrived, or is gone.
func (t *takeovers) ended(name string) {
	t.leave(name)
	if _, on := t.begun[name]; !on {
		return
	}
	delete(t.begun, name)
	t.arrived++
	if len(t.begun) == 0 && len(t.waiting) == 0 {
		t.arrived, t.order = 0, nil
	}
}

// next gives the names of those that waited and may come for their turns now.
func (t *takeovers) next() (names []string) {
	for len(t.waiting) > 0 && len(t.begun)+len(names) < t.first+t.arrived {
		w := heap.Pop(&t.waiting).(*waits)
		delete(t.listed, w.name)
		names = append(names, w.name)
	}
	return names
}

func (t *takeovers) leave(name string) {
	if w := t.listed[name]; w != nil {
		heap.Remove(&t.waiting, w.at)
		delete(t.listed, name)
	}
}

// lineup is a heap, the busiest volume first.
type lineup []*waits

func (l lineup) Len() int { return len(l) }
func (l lineup) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[j].rate, l[i].rate), cmp.Compare(l[i].name, l[j].name)) < 0
}

func (l lineup) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].at, l[j].at = i, j
}

// Push implements heap.Interface.
func (l *lineup) Push(x any) {
	w := x.(*waits)
	w.at = len(*l)
	*l = append(*l, w)
}

// Pop implements heap.Interface.
func (l *lineup) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// TakeAtFirst sets how many takeovers are under way before any has arrived, FirstTakeovers by itself.
func (v *View) TakeAtFirst(count int) { v.takeovers.first = count }

// mayTakeOver says whether it is the volume's turn to be given to another owner in place of one that was lost.
func (o *owning) mayTakeOver() bool {
	left := o.takeovers.turn(o.volume.Meta.Name, o.use(o.volume), o.now)
	if left > 0 {
		o.d.wait(left)
	}
	return left == 0
}

// arrived takes note of a volume that is no longer on its way to an owner.
func (v *View) arrived(before model.Object, volume *model.Volume) {
	if was, ok := before.(*model.Volume); ok && underWay(was) && !underWay(volume) {
		v.takeovers.ended(volume.Meta.Name)
	}
}

func underWay(volume *model.Volume) bool {
	is := volume.Status.Ownership.State
	return is == model.Acquiring || is == model.Opening
}

// nextTakeovers are the volumes whose turn it is by now.
func (v *View) nextTakeovers() []Key {
	var keys []Key
	for _, name := range v.takeovers.next() {
		keys = append(keys, Key{model.KindVolume, name})
	}
	return keys
}
