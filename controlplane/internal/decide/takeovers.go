package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// takeovers let those volumes go first, on their way from an owner that was lost to the next one, that hosts use. Each takes several steps,
// and what takes time is the work for all of them: were all begun at once, each step would be made for all before the next one is for
// any, and hosts would wait as long as it takes for all. So those that nobody uses wait until none of the others is on its way, and
// for one of these no longer than TakeoverShare, however long its own way is (R15).
type takeovers struct {
	// first are on their way and in use: since when, by name. order is the same in time's order, and has those that arrived, too.
	first map[string]time.Time
	order []begun
	// spent have had their share, and get no other one before they are owned again: one that finds no owner is tried for ever.
	spent map[string]bool
	// waiting are told when they may go.
	waiting map[string]bool
}

type begun struct {
	name string
	at   time.Time
}

func newTakeovers() takeovers {
	return takeovers{first: map[string]time.Time{}, spent: map[string]bool{}, waiting: map[string]bool{}}
}

// turn says that a volume may go (0), or for how long it waits at most.
func (t *takeovers) turn(name string, inUse bool, now time.Time) time.Duration {
	t.expire(now)
	switch {
	case t.spent[name]:
	case inUse:
		t.first[name], t.spent[name] = now, true
		t.order = append(t.order, begun{name, now})
	case len(t.first) > 0:
		t.waiting[name] = true
		return TakeoverShare - now.Sub(t.order[0].at)
	}
	delete(t.waiting, name)
	return 0
}

// expire forgets those whose time is over.
func (t *takeovers) expire(now time.Time) {
	for len(t.order) > 0 {
		next := t.order[0]
		at, on := t.first[next.name]
		if on = on && at.Equal(next.at); on && now.Sub(at) < TakeoverShare {
			return
		}
		if on {
			delete(t.first, next.name)
		}
		t.order = t.order[1:]
	}
}

// ended takes note that nobody waits for a volume any more: an attempt has failed, or, for good, it is owned, or gone.
func (t *takeovers) ended(name string, forGood bool) {
	delete(t.first, name)
	delete(t.waiting, name)
	if forGood {
		delete(t.spent, name)
	}
}

// next gives the names of those that waited and may go now.
func (t *takeovers) next() []string {
	if len(t.first) > 0 || len(t.waiting) == 0 {
		return nil
	}
	all := names(t.waiting)
	clear(t.waiting)
	return all
}

// mayTakeOver says whether it is the volume's turn to be given to another owner in place of one that was lost.
func (o *owning) mayTakeOver() bool {
	left := o.takeovers.turn(o.volume.Meta.Name, o.isUsed(o.volume), o.now)
	if left > 0 {
		o.decision.wait(left)
		o.decision.held = true
	}
	return left == 0
}

// arrived takes note of a volume that is no longer on its way to an owner.
func (v *LeaderView) arrived(before model.Object, volume *model.Volume) {
	was, ok := before.(*model.Volume)
	if !ok || was.Status.Ownership.State == volume.Status.Ownership.State {
		return
	}
	switch volume.Status.Ownership.State {
	case model.Owned, model.Unowned:
		v.takeovers.ended(volume.Meta.Name, true)
	case model.Orphaned:
		v.takeovers.ended(volume.Meta.Name, false)
	}
}

// NextTakeovers returns the volumes that waited for others and may get an owner now.
func (v *LeaderView) NextTakeovers() []Key {
	var keys []Key
	for _, name := range v.takeovers.next() {
		keys = append(keys, Key{model.KindVolume, name})
	}
	return keys
}
