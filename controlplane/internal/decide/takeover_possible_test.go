package decide_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// R11: hosts of a volume without an owner get 02/04/0A while a gateway is expected to take over, and 02/04/0C if none is. The rows
// are the states between the loss of an owner and the next one.
func TestHostsWaitWhileAGatewayCanTakeOverAndNoLonger(t *testing.T) {
	orphaned := model.Ownership{State: model.Orphaned, Epoch: 3, Order: 8}
	owned := model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7}
	fails := func(v *decide.LeaderView, gateway uint32, times int) {
		for range times {
			v.Fail("v", gateway, start)
		}
	}
	dead := func(v *decide.LeaderView) {
		ends(v, 1, start)
		g := *v.Gateways["gw-1"]
		g.Status.Health, g.Meta.Version = model.GatewayDead, 9
		v.Put(&g)
	}
	changed := func(v *decide.LeaderView, change func(*model.Volume)) {
		volume := *v.Volumes["v"]
		volume.Meta.Version++
		change(&volume)
		v.Put(&volume)
	}
	for _, c := range []struct {
		name      string
		ownership model.Ownership
		rbd       bool // both gateways reach the data; else only gateway 1
		change    func(*decide.LeaderView)
		waits     bool
	}{
		{"the owner has released it, both are there", orphaned, true, func(*decide.LeaderView) {}, true},
		{"the owner has released it and is gone", orphaned, true, func(v *decide.LeaderView) { ends(v, 1, start) }, true},
		{"both are gone", orphaned, true, func(v *decide.LeaderView) { ends(v, 1, start); ends(v, 2, start) }, false},
		{"no other gateway reaches the data", orphaned, false, func(v *decide.LeaderView) { ends(v, 1, start) }, false},
		{"no other gateway is in the path set", orphaned, true, func(v *decide.LeaderView) {
			ends(v, 1, start)
			v.Put(&model.Target{Meta: model.Meta{Name: "t", UID: "t", Version: 2},
				Spec: model.TargetSpec{Paths: 2, Luns: []model.TargetLun{{Volume: "v"}}}, Status: model.TargetStatus{PathSet: []uint32{1}}})
		}, false},
		{"the candidate failed once", orphaned, false, func(v *decide.LeaderView) { fails(v, 1, 1) }, true},
		{"the candidate failed repeatedly", orphaned, false, func(v *decide.LeaderView) { fails(v, 1, decide.TakeoverAttempts) }, false},
		{"one of two failed repeatedly", orphaned, true, func(v *decide.LeaderView) { fails(v, 1, decide.TakeoverAttempts) }, true},
		{"the owner is dead, the candidate waits after a failure", owned, true, func(v *decide.LeaderView) { dead(v); fails(v, 2, 1) }, true},
		{"the owner is dead, no other gateway reaches the data", owned, false, dead, false},
		{"it was exported just now", model.Ownership{State: model.Unowned}, false, func(*decide.LeaderView) {}, true},
		{"exported just now, and no gateway", model.Ownership{State: model.Unowned}, false, func(v *decide.LeaderView) { ends(v, 1, start) }, false},
		{"deleted", orphaned, true, func(v *decide.LeaderView) {
			changed(v, func(volume *model.Volume) { at := start; volume.Meta.DeleteTime = &at })
		}, false},
		{"rolled back", orphaned, true, func(v *decide.LeaderView) {
			changed(v, func(volume *model.Volume) { volume.Status.RollBack = &model.RollBackRequest{} })
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := known(2)
			exported(v, c.ownership, c.rbd)
			c.change(v)
			volume := *v.Volumes["v"]
			volume.Status.Conditions = v.VolumeConditions(&volume, start)
			if volume.TakeoverPossible() != c.waits {
				t.Errorf("hosts wait: %v, want %v; %+v", !c.waits, c.waits, volume.Status.Conditions)
			}
		})
	}
}

// A process that ends releases its volumes first, and its stream ends a little later.
func TestAGatewayThatReleasedAVolumeByItselfIsTheLastCandidate(t *testing.T) {
	for name, others := range map[string]bool{"another gateway": true, "no other gateway": false} {
		v := known(2)
		exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7}, true)
		observed(v, ref(1), model.VolumeReleased, 3, 7)
		orphaned, _ := next(t, v, start)
		if orphaned.State != model.Orphaned {
			t.Fatalf("%s: %+v", name, orphaned)
		}
		orphaned.Order = 8
		stored(v, orphaned, 2)
		want := ref(2)
		if !others {
			ends(v, 2, start)
			want = ref(1)
		}
		if next, _ := next(t, v, start.Add(time.Millisecond)); next.Owner != want {
			t.Errorf("%s: %+v, want %v", name, next, want)
		}
	}
}
