package model_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

var (
	one   = model.GatewayRef{Number: 1, Incarnation: "a"}
	two   = model.GatewayRef{Number: 2, Incarnation: "b"}
	again = model.GatewayRef{Number: 1, Incarnation: "c"}
)

// step fails the test if a transition that must be legal is refused.
func step(t *testing.T, next model.Ownership, err error) model.Ownership {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func owned(t *testing.T, by model.GatewayRef) model.Ownership {
	t.Helper()
	o, err := model.Ownership{State: model.Unowned}.Assign(by)
	o = step(t, o, err)
	o, err = o.Serving(by, o.Epoch)
	return step(t, o, err)
}

func TestAPlannedMoveGivesTheNextOwnerANewEpochOnlyAfterTheRelease(t *testing.T) {
	o := owned(t, one)
	moving, err := o.Move(two)
	moving = step(t, moving, err)
	if !moving.MayServe(one, 1) || moving.MayServe(two, 2) {
		t.Fatalf("while moving: %+v", moving)
	}
	next, err := moving.Released(one, 1)
	next = step(t, next, err)
	if next.MayServe(one, 1) || !next.MayServe(two, 2) || next.Epoch != 2 || next.State != model.Opening {
		t.Fatalf("after the release: %+v", next)
	}
}

func TestNoGatewayMayServeWhileTheOldOwnerIsBeingFenced(t *testing.T) {
	for _, from := range []func(model.Ownership) (model.Ownership, error){
		func(o model.Ownership) (model.Ownership, error) { return o, nil },
		func(o model.Ownership) (model.Ownership, error) { return o.Move(two) },
	} {
		o, err := from(owned(t, one))
		o = step(t, o, err)
		o, err = o.BeginFence()
		o = step(t, o, err)
		if o.MayServe(one, 1) || o.MayServe(one, 2) || o.MayServe(two, 2) || o.Epoch != 2 || o.Fence != one {
			t.Fatalf("%+v", o)
		}
		if _, err := o.Assign(two); err == nil {
			t.Fatal("assigned before the fence was proven")
		}
		if _, err := o.Fenced(again, nil, two); err == nil {
			t.Fatal("the fence of another incarnation was taken for its fence")
		}
		o, err = o.Fenced(one, nil, model.GatewayRef{})
		o = step(t, o, err)
		if _, err := o.Assign(two); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALocalVolumeKeepsItsOwnerUntilTheLockIsTaken(t *testing.T) {
	o, err := owned(t, one).Acquire(two)
	o = step(t, o, err)
	if !o.MayServe(one, 1) || o.MayServe(two, 1) || o.Epoch != 1 {
		t.Fatalf("before the lock: %+v", o)
	}
	if _, err := o.Locked(one); err == nil {
		t.Fatal("a lock that was not requested began an epoch")
	}
	o, err = o.Locked(two)
	o = step(t, o, err)
	if o.MayServe(one, 1) || !o.MayServe(two, 2) {
		t.Fatalf("after the lock: %+v", o)
	}
}

func TestALockIsNotAskedOfWhoOwnsTheVolume(t *testing.T) {
	if _, err := owned(t, one).Acquire(one); err == nil {
		t.Fatal("the owner was asked for the lock that it holds")
	}
}

func TestTheWordOfAnotherIncarnationCountsForNothing(t *testing.T) {
	o := owned(t, one)
	moving, err := o.Move(two)
	moving = step(t, moving, err)
	if _, err := moving.Released(again, 1); err == nil {
		t.Fatal("released by an incarnation that does not own it")
	}
	opening, err := model.Ownership{State: model.Unowned}.Assign(one)
	opening = step(t, opening, err)
	if _, err := opening.Serving(again, 1); err == nil {
		t.Fatal("served by an incarnation that does not own it")
	}
	if _, err := opening.Serving(one, 0); err == nil {
		t.Fatal("served in an old epoch")
	}
}

// transition applies one change with random arguments.
func transition(random *rand.Rand, o model.Ownership) (model.Ownership, error) {
	refs := []model.GatewayRef{one, two, again, {}}
	who, epoch := refs[random.IntN(len(refs))], o.Epoch-uint64(random.IntN(2))
	switch random.IntN(13) {
	case 0:
		return o.Assign(who)
	case 1:
		return o.Acquire(who)
	case 2:
		return o.Locked(who)
	case 3:
		return o.Serving(who, epoch)
	case 4:
		return o.Move(who)
	case 5:
		return o.CancelMove()
	case 6:
		return o.Released(who, epoch)
	case 7:
		return o.BeginFence()
	case 8:
		return o.Fenced(who, nil, refs[random.IntN(len(refs))])
	case 9:
		return o.Abandon()
	case 10:
		return o.Retire()
	case 11:
		return o.LoseOwner()
	}
	return o.Released(o.Owner, o.Epoch)
}

// R1, for any order of changes: two gateways may never serve in one epoch, the epoch never decreases, and a refused change alters
// nothing.
func TestNoOrderOfChangesGivesTwoOwnersInOneEpoch(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		o := model.Ownership{State: model.Unowned}
		server := map[uint64]model.GatewayRef{}
		for range 60 {
			next, err := transition(random, o)
			var illegal *model.IllegalTransition
			if err != nil && (!errors.As(err, &illegal) || next != o) {
				t.Fatalf("seed %d: %v changed %+v to %+v", seed, err, o, next)
			}
			if next.Epoch < o.Epoch || next.Epoch > o.Epoch+1 {
				t.Fatalf("seed %d: epoch %d after %d", seed, next.Epoch, o.Epoch)
			}
			for _, who := range []model.GatewayRef{one, two, again} {
				if !next.MayServe(who, next.Epoch) {
					continue
				}
				if before, known := server[next.Epoch]; known && before != who {
					t.Fatalf("seed %d: %v and %v in epoch %d", seed, before, who, next.Epoch)
				}
				server[next.Epoch] = who
			}
			o = next
		}
	}
}

// A store that was restored from a backup has lost the last epochs and orders; gateways know them.
func TestALostEpochIsAdoptedTogetherWithTheGatewayThatServesInIt(t *testing.T) {
	o := owned(t, one)
	served, err := o.Raise(two, 7, 20, true)
	served = step(t, served, err)
	if !served.MayServe(two, 7) || served.MayServe(one, 1) || served.MayServe(one, 7) || served.Order != 20 {
		t.Errorf("served by two: %+v", served)
	}
	orphan, err := o.Raise(two, 7, 20, false)
	orphan = step(t, orphan, err)
	if orphan.State != model.Orphaned || orphan.Epoch != 7 || orphan.MayServe(one, 7) || orphan.MayServe(two, 7) {
		t.Errorf("served by no known gateway: %+v", orphan)
	}
	order, err := o.Raise(two, o.Epoch, 20, true)
	order = step(t, order, err)
	if !order.MayServe(one, o.Epoch) || order.Order != 20 {
		t.Errorf("only the order was lost: %+v", order)
	}
	if _, err := o.Raise(two, o.Epoch, o.Order, true); err == nil {
		t.Error("nothing was lost, and another gateway owns it")
	}
}

// R1, after the loss of the changes that followed a backup: no epoch up to the floor gets an owner that it did not have at the
// restore, and no order up to the floor is assigned again.
func TestARestoredStoreGivesNoEpochAndNoOrderAgain(t *testing.T) {
	const floor, seeds = 1000, 2000
	renewed := 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 2))
		o := model.Ownership{State: model.Unowned}
		for range random.IntN(30) {
			next, _ := transition(random, o)
			o = o.Ordered(next, time.Time{})
		}
		backup := o
		o = o.Restored(floor)
		if o.State != backup.State || o.Epoch != backup.Epoch || o.Owner != backup.Owner || o.Order != backup.Order {
			t.Fatalf("seed %d: restoring alone made %+v of %+v", seed, o, backup)
		}
		for range 30 {
			next, err := transition(random, o)
			if random.IntN(8) == 0 {
				if next, err = o.Renew(); err == nil {
					renewed++
				}
			}
			if err != nil {
				continue
			}
			o = o.Ordered(next, time.Time{})
			if o.Order <= floor {
				t.Fatalf("seed %d: order %d is given again: %+v", seed, o.Order, o)
			}
			if o.Epoch <= floor && !o.Owner.IsZero() && (o.Epoch != backup.Epoch || o.Owner != backup.Owner) {
				t.Fatalf("seed %d: epoch %d is given again: %+v", seed, o.Epoch, o)
			}
		}
	}
	if renewed == 0 {
		t.Error("no volume was given to its owner again")
	}
}

func TestAnOwnerIsAskedAgainOnlyIfEpochsWereLost(t *testing.T) {
	o := owned(t, one)
	if _, err := o.Renew(); err == nil {
		t.Error("renewed, and nothing was lost")
	}
	anew, err := o.Restored(10).Renew()
	anew = step(t, anew, err)
	if anew.State != model.Opening || anew.Owner != one || anew.Epoch != 11 || anew.Lost() {
		t.Errorf("renewed: %+v", anew)
	}
}
