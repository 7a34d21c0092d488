package store_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

func ref(number uint32) model.GatewayRef { return model.GatewayRef{Number: number, Incarnation: "i"} }

func assign(to model.GatewayRef) func(*model.Volume) (model.Ownership, error) {
	return func(v *model.Volume) (model.Ownership, error) { return v.Status.Ownership.Assign(to) }
}

// R1: one owner per volume and epoch.
func TestOfConcurrentAssignmentsOfAVolumeOneSucceeds(t *testing.T) {
	f := open(t)
	f.prerequisites()
	must(f, f.Volumes, volume("orders"))
	var all sync.WaitGroup
	var mutex sync.Mutex
	won := 0
	for number := uint32(1); number <= 8; number++ {
		all.Go(func() {
			_, err := f.term().Own(t.Context(), "orders", assign(ref(number)))
			var illegal *model.IllegalTransition
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil {
				won++
			} else if !errors.As(err, &illegal) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, _ := f.Volumes.Get(t.Context(), "orders")
	if won != 1 || got.Status.Ownership.Epoch != 1 || got.Status.Ownership.State != model.Opening {
		t.Fatalf("%d won: %+v", won, got.Status.Ownership)
	}
}

// R1: a volume that the caller has read only saves a read.
func TestAnOwnerIsSetOnTheNewestStateWhateverTheCallerHasSeen(t *testing.T) {
	f := open(t)
	f.prerequisites()
	seen := volume("orders")
	must(f, f.Volumes, seen)
	owned, err := f.term().OwnSeen(t.Context(), seen, nil, assign(ref(1)))
	if err != nil || owned.Status.Ownership.Owner != ref(1) || seen.Status.Ownership.State != model.Unowned {
		t.Fatalf("%+v, %v; seen %+v", owned.Status.Ownership, err, seen.Status.Ownership)
	}
	var looked []model.OwnershipState
	_, err = f.term().OwnSeen(t.Context(), seen, nil, func(v *model.Volume) (model.Ownership, error) {
		looked = append(looked, v.Status.Ownership.State)
		return v.Status.Ownership.Assign(ref(2))
	})
	var illegal *model.IllegalTransition
	if !errors.As(err, &illegal) || !slices.Equal(looked, []model.OwnershipState{model.Unowned, model.Opening}) {
		t.Fatalf("%v after %v", err, looked)
	}
	got, _ := f.Volumes.Get(t.Context(), "orders")
	if got.Status.Ownership != owned.Status.Ownership || got.Meta.Version != owned.Meta.Version {
		t.Fatalf("%+v, reported %+v", got.Status.Ownership, owned.Status.Ownership)
	}
}

// R8: registrations are stored for the present epoch and generation only.
func TestReservationsOfAnOldEpochAreRefused(t *testing.T) {
	f := open(t)
	f.prerequisites()
	v := volume("orders")
	must(f, f.Volumes, v)
	own := func(change func(model.Ownership) (model.Ownership, error)) {
		t.Helper()
		_, err := f.term().Own(t.Context(), "orders", func(v *model.Volume) (model.Ownership, error) {
			return change(v.Status.Ownership)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	commit := func(epoch, generation uint64, state string) error {
		return f.CommitReservations(t.Context(), v.Meta.UID, epoch, generation, []byte(state))
	}
	own(func(o model.Ownership) (model.Ownership, error) { return o.Assign(ref(1)) })
	if err := commit(1, 0, "first"); err != nil {
		t.Fatal(err)
	}
	if err := commit(1, 0, "again"); !errors.Is(err, model.ErrGeneration) {
		t.Fatalf("generation 0 twice: %v", err)
	}
	own(func(o model.Ownership) (model.Ownership, error) { return o.BeginFence() })
	if err := commit(1, 1, "stale"); !errors.Is(err, model.ErrFenced) {
		t.Fatalf("in the old epoch: %v", err)
	}
	if _, err := f.LoadReservations(t.Context(), v.Meta.UID, 1); !errors.Is(err, model.ErrFenced) {
		t.Fatalf("load in the old epoch: %v", err)
	}
	got, err := f.LoadReservations(t.Context(), v.Meta.UID, 2)
	if err != nil || got.Generation != 1 || string(got.State) != "first" {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestOfTwoCommitsFromOneGenerationOneIsStored(t *testing.T) {
	f := open(t)
	f.prerequisites()
	v := volume("orders")
	must(f, f.Volumes, v)
	if _, err := f.term().Own(t.Context(), "orders", assign(ref(1))); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f.CommitReservations(t.Context(), v.Meta.UID, 1, 0, []byte{byte(i)}) })
	}
	all.Wait()
	stored := -1
	for i, err := range errs {
		if err == nil && stored >= 0 {
			t.Fatal("two commits of generation 1 were stored")
		}
		if err == nil {
			stored = i
		} else if !errors.Is(err, model.ErrGeneration) {
			t.Fatal(err)
		}
	}
	got, err := f.LoadReservations(t.Context(), v.Meta.UID, 1)
	if err != nil || got.Generation != 1 || len(got.State) != 1 || int(got.State[0]) != stored {
		t.Fatalf("%+v, %v, winner %d", got, err, stored)
	}
}
