package leader

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

var (
	one = decide.Key{Kind: model.KindVolume, Name: "one"}
	two = decide.Key{Kind: model.KindVolume, Name: "two"}
)

func given(t *testing.T, q *queue) decide.Key {
	t.Helper()
	key, ok := q.next(t.Context())
	if !ok {
		t.Fatal("nothing is given out")
	}
	return key
}

func TestAKeyIsGivenToOneWorkerAndAgainIfItWasAddedMeanwhile(t *testing.T) {
	q := newQueue()
	q.add(one, one, two)
	if given(t, q) != one || given(t, q) != two {
		t.Fatal("each once, in order")
	}
	q.add(one)
	if key, _, ok := q.takeDue(time.Now()); ok {
		t.Fatalf("%v is given to a second worker", key)
	}
	q.done(one, false, 0)
	if given(t, q) != one {
		t.Fatal("a key that was added meanwhile is lost")
	}
	q.done(one, false, 0)
	q.done(two, false, 0)
	if len(q.state) != 0 {
		t.Errorf("%d keys stay that are not waited for", len(q.state))
	}
}

var (
	ofTarget  = decide.Key{Kind: model.KindTarget, Name: "db"}
	ofGateway = decide.Key{Kind: model.KindGateway, Name: "gw-1"}
)

// A volume that is changing its owner precedes others that have not begun, and keys that follow from many changes are last.
func TestTheQueueServesUrgentKeysFirstAndDerivedKeysLast(t *testing.T) {
	q := newQueue()
	q.add(ofTarget, one, two, ofGateway)
	q.hurry(two)
	for _, want := range []decide.Key{ofGateway, two, one, ofTarget} {
		if got := given(t, q); got != want {
			t.Errorf("%v is given out, wanted %v", got, want)
		}
	}
	q.add(one)
	q.hurry(two) // while workers have them
	q.done(one, false, 0)
	q.done(two, false, 0)
	if given(t, q) != two || given(t, q) != one {
		t.Error("a hurry of a key in hand is forgotten")
	}
	q.add(one, two)
	q.done(one, false, 0)
	q.done(two, false, 0)
	if given(t, q) != one {
		t.Error("a key that was urgent once stays urgent")
	}
}

func TestKeysOfHigherPriorityDelayTheOthersForALimitedTime(t *testing.T) {
	q := newQueue()
	q.add(one, ofTarget)
	waiting := map[decide.Key]bool{one: true, ofTarget: true}
	for turn := 0; len(waiting) > 0; turn++ {
		if turn > 2*(maxPassed+1) {
			t.Fatalf("after %d turns of others these are not given out: %v", turn, waiting)
		}
		q.hurry(two)
		key := given(t, q)
		delete(waiting, key)
		q.done(key, false, 0)
	}
}

func TestAFailingKeyIsRetriedWithBackoffAndDelaysNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.add(one)
		began := time.Now()
		for _, want := range []time.Duration{0, decide.MinRetry, 2 * decide.MinRetry, 4 * decide.MinRetry} {
			if given(t, q) != one || time.Since(began) != want {
				t.Errorf("it came back after %s, wanted %s", time.Since(began), want)
			}
			q.done(one, true, 0)
			began = time.Now()
			q.add(two)
			if given(t, q) != two || time.Since(began) != 0 { // R15
				t.Fatal("another key waits for the one that fails")
			}
			q.done(two, false, 0)
		}
		given(t, q)
		q.done(one, false, 3*time.Second) // it succeeded: it is due when the decision said
		began = time.Now()
		if given(t, q); time.Since(began) != 3*time.Second {
			t.Errorf("looked at again after %s", time.Since(began))
		}
	})
}

func TestNothingIsDecidedBeforeEveryWatchIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := newMetrics(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		w := &term{Leader: &Leader{metrics: m}, queue: newQueue(), view: decide.NewLeaderView(1, time.Now()),
			unsynced: map[model.Kind]bool{}, synced: make(chan struct{}), replan: make(chan struct{}, 1)}
		w.view.Put(&model.Volume{Meta: model.Meta{Name: "one", Version: 1}})
		w.sync(model.KindVolume, false)
		w.sync(model.KindTarget, false)
		waits := func() bool {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := make(chan error, 1)
			go func() { done <- w.whenSynced(ctx) }()
			synctest.Wait()
			select {
			case <-done:
				return false
			default:
				stop()
				<-done
				return true
			}
		}
		w.sync(model.KindVolume, true)
		if !waits() {
			t.Error("one watch is not complete yet")
		}
		w.sync(model.KindTarget, true)
		if waits() || given(t, w.queue) != one {
			t.Error("every watch is complete, and the keys are due")
		}
		w.sync(model.KindVolume, false)
		if !waits() {
			t.Error("a watch was lost")
		}
	})
}

func TestAPoolThatBeginsToLackAVolumesDeviceHasItsVolumesLookedAt(t *testing.T) {
	v := decide.NewLeaderView(1, time.Time{})
	pool := func(degraded model.ConditionStatus) *model.StoragePool {
		return &model.StoragePool{Meta: model.Meta{Name: "pool"}, Status: model.StoragePoolStatus{
			Conditions: []model.Condition{{Type: model.ConditionDegraded, Status: degraded}}}}
	}
	v.Put(&model.Volume{Meta: model.Meta{Name: "v", UID: "u"}, Spec: model.VolumeSpec{Pool: "pool"}})
	wanted := decide.Key{Kind: model.KindVolume, Name: "v"}
	if !slices.Contains(v.TouchedBy(pool(model.ConditionFalse), pool(model.ConditionTrue)), wanted) {
		t.Error("no decision on the volume is made")
	}
	if slices.Contains(v.TouchedBy(pool(model.ConditionTrue), pool(model.ConditionTrue)), wanted) {
		t.Error("every change of a pool has all its volumes looked at")
	}
}
