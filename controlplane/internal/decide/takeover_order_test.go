package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

var began = time.Unix(1000, 0)

func goes(t *testing.T, turns *takeovers, name string, inUse bool, at time.Time, wait time.Duration) {
	t.Helper()
	if got := turns.waitTime(name, inUse, at); got != wait {
		t.Errorf("%s waits for %s, wanted %s", name, got, wait)
	}
}

func TestUnusedVolumesWaitUntilThoseInUseHaveArrivedAndThenMoveAtOnce(t *testing.T) {
	turns := newTakeovers()
	goes(t, &turns, "idle-0", false, began, 0) // no other volume precedes it
	for i := range 3 {
		goes(t, &turns, fmt.Sprintf("used-%d", i), true, began, 0)
	}
	for i := 1; i < 4; i++ {
		goes(t, &turns, fmt.Sprintf("idle-%d", i), false, began, TakeoverShare)
	}
	for i := range 3 {
		if next := turns.next(); len(next) > 0 {
			t.Errorf("%v go while %d volumes in use are on their way", next, 3-i)
		}
		turns.ended(fmt.Sprintf("used-%d", i), true)
	}
	if next := turns.next(); !slices.Equal(next, []string{"idle-1", "idle-2", "idle-3"}) {
		t.Errorf("%v", next)
	}
	goes(t, &turns, "idle-1", false, began, 0)
	if next := turns.next(); len(next)+len(turns.first)+len(turns.waiting)+len(turns.spent) > 0 {
		t.Errorf("%v are chosen twice; %+v are left", next, turns)
	}
}

func TestAHangingVolumeInUseDelaysOthersForItsShareOnly(t *testing.T) {
	turns := newTakeovers()
	goes(t, &turns, "hangs", true, began, 0)
	goes(t, &turns, "comes", true, began.Add(30*time.Millisecond), 0)
	turns.ended("comes", true)
	goes(t, &turns, "hangs", true, began.Add(60*time.Millisecond), 0) // a repeated attempt gets no second share
	goes(t, &turns, "idle", false, began.Add(TakeoverShare-1), 1)
	goes(t, &turns, "idle", false, began.Add(TakeoverShare), 0)
	// It is tried again and again, and finds no owner.
	turns.ended("hangs", false)
	goes(t, &turns, "hangs", true, began.Add(2*TakeoverShare), 0)
	goes(t, &turns, "hangs", false, began.Add(2*TakeoverShare), 0)
	goes(t, &turns, "idle", false, began.Add(2*TakeoverShare), 0)
	if len(turns.first)+len(turns.order)+len(turns.waiting) > 0 {
		t.Errorf("the remaining takeovers: %+v", turns)
	}
	turns.ended("hangs", true) // it gets an owner, and loses it
	goes(t, &turns, "hangs", true, began.Add(3*TakeoverShare), 0)
	goes(t, &turns, "idle", false, began.Add(3*TakeoverShare), TakeoverShare)
}

func TestADeletedVolumeDelaysNoTakeoverAndIsNotReported(t *testing.T) {
	v := NewLeaderView(1, began)
	goes(t, &v.takeovers, "used", true, began, 0)
	goes(t, &v.takeovers, "one", false, began, TakeoverShare)
	goes(t, &v.takeovers, "two", false, began, TakeoverShare)
	for _, name := range []string{"one", "used"} {
		v.Delete(&model.Volume{Meta: model.Meta{Name: name}}, 2)
	}
	if next := v.NextTakeovers(); !slices.Equal(next, []Key{{model.KindVolume, "two"}}) {
		t.Errorf("%v", next)
	}
}

// heartbeat reports that volumes have transferred this number of bytes and executed as many commands.
func heartbeat(v *LeaderView, incarnation string, at time.Time, moved map[string]uint64) {
	report := &model.LoadReport{Gateway: model.GatewayRef{Number: 1, Incarnation: incarnation}, At: at}
	for _, name := range names(moved) {
		report.Volumes = append(report.Volumes, model.VolumeLoad{UID: name, Commands: moved[name], Bytes: moved[name]})
	}
	v.Observe(model.Observed{Version: 1, Load: report}, at)
}

func TestALostGatewayTouchesItsVolumesInUseFirstByLoad(t *testing.T) {
	v := NewLeaderView(1, began)
	for _, name := range []string{"idle", "once", "some", "many"} {
		v.Put(inState(name, 1, model.Owned))
	}
	heartbeat(v, "a", began, map[string]uint64{"idle": 0, "once": 1, "some": 0, "many": 0})
	heartbeat(v, "a", began.Add(model.LoadsInterval), map[string]uint64{"idle": 0, "once": 1, "some": 1000, "many": 2000})
	want := []Key{{model.KindVolume, "many"}, {model.KindVolume, "some"}, {model.KindVolume, "once"}, {model.KindVolume, "idle"}}
	if touched := v.touchedByGateway(1); !slices.Equal(touched, want) {
		t.Errorf("%v", touched)
	}
}

// Hosts that only check a path (TEST UNIT READY) transfer nothing.
func TestAVolumeIsInUseFromItsFirstByteUntilNoneMovedForAWhile(t *testing.T) {
	v := NewLeaderView(1, began)
	volume := inState("v", 1, model.Owned)
	v.Put(volume)
	at := began
	for _, step := range []struct {
		incarnation string
		moved       uint64
		after       time.Duration
		used        bool
	}{{"a", 0, 0, false}, {"a", 512, time.Second, true}, {"a", 512, UsedFor, true}, {"a", 512, time.Second, false},
		{"a", 1024, time.Second, true}, {"b", 0, UsedFor + 1, false}, {"c", 100, time.Second, true}} {
		at = at.Add(step.after)
		heartbeat(v, step.incarnation, at, map[string]uint64{"v": step.moved})
		if used := v.isUsed(volume); used != step.used {
			t.Errorf("%d bytes of process %s, %s later: in use: %v", step.moved, step.incarnation, step.after, used)
		}
	}
}
