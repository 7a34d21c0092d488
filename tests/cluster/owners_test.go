package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func told(owner uint32, epoch uint64, state pb.OwnershipState) *pb.VolumeStatus {
	return &pb.VolumeStatus{OwnerGateway: owner, Epoch: epoch, Ownership: state}
}

func TestVolumesAreServedAgainOnceEachIsOwnedInALaterEpoch(t *testing.T) {
	const owned, opening = pb.OwnershipState_OWNERSHIP_STATE_OWNED, pb.OwnershipState_OWNERSHIP_STATE_OPENING
	o := &Owners{known: map[string]Ownership{}, changed: make(chan struct{})}
	o.observe("a", told(1, 3, owned))
	o.observe("b", told(1, 5, owned))
	o.observe("c", told(2, 7, owned))
	before := o.Of(1)
	if len(before) != 2 {
		t.Fatalf("gateway 1 owns %v", before)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, step := range []struct {
		volume string
		status *pb.VolumeStatus
		done   bool
	}{
		{"a", told(2, 4, owned), false},
		{"b", told(2, 6, opening), false},
		{"b", told(1, 5, owned), false},
		{"b", told(1, 6, owned), true}, // the same gateway, another incarnation of it
	} {
		o.observe(step.volume, step.status)
		_, left, _ := o.newer(before)
		if (left == 0) != step.done {
			t.Errorf("after %v: %d left", step.status, left)
		}
		if !step.done {
			if _, err := o.WaitNewer(over, before); !errors.Is(err, context.Canceled) {
				t.Errorf("after %v: %v", step.status, err)
			}
		}
	}
	last, err := o.WaitNewer(context.Background(), before)
	if err != nil || last.Before(before["a"].Heard) {
		t.Errorf("%v, %v", last, err)
	}
	o.observe("b", told(1, 6, owned)) // nothing new
	if again, _ := o.WaitNewer(context.Background(), before); again != last || time.Since(again) < 0 {
		t.Errorf("the moment went from %v to %v", last, again)
	}
}
