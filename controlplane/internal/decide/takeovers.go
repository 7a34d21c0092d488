package decide

import (
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// takeovers orders the volumes that lost their owner: those that hosts use come first. Each takeover takes several steps, and the
// work for all of them is what takes time. If all began at once, each step would be made for all volumes before the next step of
// any volume, and every host would wait for all of them. So volumes that no host uses wait until no volume in use is on its way.
// Each of these delays them for at most TakeoverShare, however long it takes (R15).
type takeovers struct {
	// first has the volumes in use that are on their way, by name, and the time since when. order has the same in order of time,
	// and also those that have arrived.
	first map[string]time.Time
	order []begun
	// spent have used their share and get another one only after they are owned again: a volume that finds no owner is tried
	// without end.
	spent map[string]bool
	// waiting are the volumes that NextTakeovers returns when they may proceed.
	waiting map[string]bool
}

type begun struct {
	name string
	at   time.Time
}

func newTakeovers() takeovers {
	return takeovers{first: map[string]time.Time{}, spent: map[string]bool{}, waiting: map[string]bool{}}
}

// waitTime returns 0 if a volume may proceed, else the longest time for which it waits.
func (t *takeovers) waitTime(name string, inUse bool, now time.Time) time.Duration {
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

// expire removes the volumes whose share has ended.
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

// ended records that no volume has to wait for this one any more: an attempt has failed, or, forGood, it is owned or gone.
func (t *takeovers) ended(name string, forGood bool) {
	delete(t.first, name)
	delete(t.waiting, name)
	if forGood {
		delete(t.spent, name)
	}
}

// next returns the names of the volumes that waited and may proceed now.
func (t *takeovers) next() []string {
	if len(t.first) > 0 || len(t.waiting) == 0 {
		return nil
	}
	all := names(t.waiting)
	clear(t.waiting)
	return all
}

// mayTakeOver reports whether the volume may now be assigned to another owner instead of a lost one.
func (o *owning) mayTakeOver() bool {
	left := o.takeovers.waitTime(o.volume.Meta.Name, o.isUsed(o.volume), o.now)
	if left > 0 {
		o.decision.wait(left)
		o.decision.held = true
	}
	return left == 0
}

// arrived records that a volume is no longer on its way to an owner.
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
