package decide_test

import (
	"errors"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/placement"
)

const term = 100

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func ref(number uint32) model.GatewayRef { return model.GatewayRef{Number: number, Incarnation: "i"} }

// known returns a view of gateways gw-1 … on one node each, which were ready when its term began.
func known(gateways int) *decide.LeaderView {
	v := decide.NewLeaderView(term, start)
	for n := 1; n <= gateways; n++ {
		name := string(rune('0' + n))
		v.Put(&model.Gateway{Meta: model.Meta{Name: "gw-" + name, UID: name, Version: 1},
			Spec: model.GatewaySpec{GatewayPool: "default", Node: "node-" + name},
			Status: model.GatewayStatus{Number: uint32(n), Incarnation: "i", Health: model.GatewayReady,
				PortalGroupTags: map[string]uint32{"red": uint32(n)}}})
		connected(v, uint32(n), "i")
	}
	return v
}

func connected(v *decide.LeaderView, number uint32, incarnation string) {
	v.Observe(connection(number, incarnation), start)
}

func connection(number uint32, incarnation string) model.Observed {
	return model.Observed{Version: 1, Connection: &model.GatewayConnection{Gateway: "gw-" + string(rune('0'+number)),
		Ref: model.GatewayRef{Number: number, Incarnation: incarnation}}}
}

func ends(v *decide.LeaderView, number uint32, at time.Time) {
	o := connection(number, "i")
	o.Version = term + 1
	v.Unobserve(o, at)
}

func says(v *decide.LeaderView, reporter, peer uint32, reach model.Reach, silent time.Duration, version int64,
	at time.Time,
) {
	v.Observe(model.Observed{Version: version, Peer: &model.PeerReport{Reporter: ref(reporter), Peer: ref(peer),
		Reach: reach, Silent: silent}}, at)
}

// refuses reports that a peer answers, and refuses the login of the reporter.
func refuses(v *decide.LeaderView, reporter, peer uint32, why string) {
	v.Observe(model.Observed{Version: term + 1, Peer: &model.PeerReport{Reporter: ref(reporter), Peer: ref(peer),
		Reach: model.PeerConnected, Refusal: why}}, start)
}

// healthOf decides on gw-1, and returns its new health.
func healthOf(v *decide.LeaderView, now time.Time) (model.GatewayHealth, decide.Decision) {
	g := *v.Gateways["gw-1"]
	decision := v.DecideGateway("gw-1", now)
	for _, a := range decision.Actions {
		modifies(a, &g)
	}
	return g.Status.Health, decision
}

// R1: a gateway is dead if its stream is gone and its peers find it refused, or silent for 4 s, both observed in this term.
func TestAGatewayIsDeadOnlyByItsStreamAndItsPeers(t *testing.T) {
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	for name, c := range map[string]struct {
		happens func(*decide.LeaderView)
		now     time.Time
		want    model.GatewayHealth
		// again: the result may change as time passes.
		again bool
	}{
		"it has a stream, whatever peers say": {func(v *decide.LeaderView) {
			says(v, 2, 1, model.PeerRefused, 0, term+2, start)
		}, second(60), model.GatewayReady, false},
		"no peer says anything": {func(v *decide.LeaderView) { ends(v, 1, start) }, second(60), model.GatewayDisconnected,
			false},
		"refused": {func(v *decide.LeaderView) {
			ends(v, 1, start)
			says(v, 2, 1, model.PeerRefused, 0, term+2, start)
		}, second(0), model.GatewayDead, false},
		"refused, said before the stream ended": {func(v *decide.LeaderView) {
			says(v, 2, 1, model.PeerRefused, 0, term+1, start)
			ends(v, 1, start)
		}, second(0), model.GatewayDead, false},
		"refused, said before this term": {func(v *decide.LeaderView) {
			ends(v, 1, start)
			says(v, 2, 1, model.PeerRefused, 0, term-1, start)
		}, second(60), model.GatewayDisconnected, false},
		"refused was another incarnation": {func(v *decide.LeaderView) {
			ends(v, 1, start)
			v.Observe(model.Observed{Version: term + 2, Peer: &model.PeerReport{Reporter: ref(2), Reach: model.PeerRefused,
				Peer: model.GatewayRef{Number: 1, Incarnation: "before"}}}, start)
		}, second(60), model.GatewayDisconnected, false},
		"another incarnation of a peer said so": {func(v *decide.LeaderView) {
			ends(v, 1, start)
			says(v, 2, 1, model.PeerRefused, 0, term+2, start)
			connected(v, 2, "j")
		}, second(60), model.GatewayDisconnected, false},
		"the peer that said so has no stream": {func(v *decide.LeaderView) {
			ends(v, 1, start)
			says(v, 2, 1, model.PeerRefused, 0, term+2, start)
			ends(v, 2, start)
		}, second(60), model.GatewayDisconnected, false},
		"one peer hears it": {func(v *decide.LeaderView) {
			ends(v, 1, start)
			says(v, 2, 1, model.PeerRefused, 0, term+2, start)
			says(v, 3, 1, model.PeerConnected, 0, term-1, start)
		}, second(60), model.GatewayDisconnected, false},
		"silent for less": {func(v *decide.LeaderView) {
			ends(v, 1, start)
			says(v, 2, 1, model.PeerSilent, 3*time.Second, term+2, start)
		}, start.Add(999 * time.Millisecond), model.GatewayDisconnected, true},
		"silent for long enough": {func(v *decide.LeaderView) {
			ends(v, 1, start)
			says(v, 2, 1, model.PeerSilent, 3*time.Second, term+2, start)
		}, second(1), model.GatewayDead, false},
		"there was no stream when the term began, and it may come back": {func(v *decide.LeaderView) {
			v.ResetObserved(start)
			connected(v, 2, "i")
			says(v, 2, 1, model.PeerRefused, 0, term+2, start)
		}, second(9), model.GatewayDisconnected, true},
		"there was no stream when the term began, and it does not come back": {func(v *decide.LeaderView) {
			v.ResetObserved(start)
			connected(v, 2, "i")
			says(v, 2, 1, model.PeerRefused, 0, term+2, start)
		}, second(10), model.GatewayDead, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := known(3)
			c.happens(v)
			got, decision := healthOf(v, c.now)
			if got != c.want || (decision.Wait > 0) != c.again {
				t.Errorf("%s, looked at again after %s; wanted %s, again %v", got, decision.Wait, c.want, c.again)
			}
		})
	}
}

func TestVerdictsOnMoreNodesThanAFewAreHeldBack(t *testing.T) {
	v := known(5)
	dead := func(now time.Time) (count int, limited bool, wait time.Duration) {
		for _, name := range []string{"gw-1", "gw-2", "gw-3", "gw-4"} {
			g := *v.Gateways[name]
			decision := v.DecideGateway(name, now)
			for _, a := range decision.Actions {
				if modifies(a, &g) {
					g.Meta.Version++
					v.Put(&g)
				}
			}
			limited = limited || decision.RateLimited
			wait = max(wait, decision.Wait)
			if g.Status.Health == model.GatewayDead {
				count++
			}
		}
		return count, limited, wait
	}
	for n := uint32(1); n <= 4; n++ {
		ends(v, n, start)
		says(v, 5, n, model.PeerRefused, 0, term+2, start)
	}
	if count, limited, wait := dead(start); count != decide.MaxDeadNodes || !limited || wait != decide.DeathWindow {
		t.Errorf("%d are dead, held back %v, again after %s", count, limited, wait)
	}
	if count, _, _ := dead(start.Add(decide.DeathWindow - 1)); count != decide.MaxDeadNodes {
		t.Errorf("%d are dead within the window", count)
	}
	if count, _, _ := dead(start.Add(decide.DeathWindow)); count != 2*decide.MaxDeadNodes {
		t.Errorf("%d are dead after it", count)
	}
}

// exported adds a volume in a pool on node-1 that a target of gateways 1 and 2 maps.
func exported(v *decide.LeaderView, ownership model.Ownership, rbd bool) {
	pool := &model.StoragePool{Meta: model.Meta{Name: "pool", UID: "p", Version: 1}}
	if rbd {
		pool.Spec.RBD = &model.RBDPool{}
		recorded(v, ref(1), 1, model.RadosClient{Client: "c1"})
		recorded(v, ref(2), 1, model.RadosClient{Client: "c2"})
	} else {
		pool.Spec.Local = &model.LocalPool{Node: "node-1", Directory: "/srv"}
	}
	v.Put(pool)
	v.Put(&model.Target{Meta: model.Meta{Name: "t", UID: "t", Version: 1},
		Spec:   model.TargetSpec{Paths: 2, Luns: []model.TargetLun{{Volume: "v"}}},
		Status: model.TargetStatus{PathSet: []uint32{1, 2}}})
	stored(v, ownership, 1)
}

func stored(v *decide.LeaderView, ownership model.Ownership, version int64) {
	v.Put(&model.Volume{Meta: model.Meta{Name: "v", UID: "u", Version: version},
		Spec:   model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20},
		Status: model.VolumeStatus{CapacityBytes: 1 << 20, Ownership: ownership}})
	v.DecideVolume("v", start) // the leader has seen it then
}

// next returns the ownership that the decision on the volume stores, or the present one if it stores none.
func next(t *testing.T, v *decide.LeaderView, now time.Time) (model.Ownership, decide.Decision) {
	t.Helper()
	decision := v.DecideVolume("v", now)
	ownership := v.Volumes["v"].Status.Ownership
	for _, a := range decision.Actions {
		if as[*decide.ChangeOwner](a) == nil {
			continue
		}
		volume := *v.Volumes["v"]
		changed, err := as[*decide.ChangeOwner](a).Owning(&volume)
		if err != nil {
			t.Fatal(err)
		}
		return changed, decision
	}
	return ownership, decision
}

func observed(v *decide.LeaderView, by model.GatewayRef, state model.ObservedState, epoch, order uint64) {
	v.Observe(model.Observed{Version: term + 5, Volume: &model.VolumeReport{UID: "u", Gateway: by,
		VolumeObservation: model.VolumeObservation{State: state, Epoch: epoch, Order: order}}}, start)
}

func TestOneStepOfOwnershipFollowsFromEachObservation(t *testing.T) {
	owned := model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7, Since: start}
	opening := model.Ownership{State: model.Opening, Epoch: 3, Owner: ref(1), Order: 7, Since: start}
	acquiring := model.Ownership{State: model.Acquiring, Epoch: 3, Next: ref(1), Order: 7, Since: start}
	moving := model.Ownership{State: model.Moving, Epoch: 3, Owner: ref(1), Next: ref(2), Order: 7, Since: start}
	lost, lostMoving := owned.Restored(1000), moving.Restored(1000)
	lostMoving.Next = model.GatewayRef{}
	late := start.Add(time.Minute)
	for name, c := range map[string]struct {
		ownership model.Ownership
		rbd       bool
		happens   func(*decide.LeaderView)
		now       time.Time
		state     model.OwnershipState
		epoch     uint64
		noOwner   bool
	}{
		"unowned, local: the lock first": {model.Ownership{State: model.Unowned}, false, nil, start, model.Acquiring, 0, false},
		"unowned, rbd: an owner":         {model.Ownership{State: model.Unowned}, true, nil, start, model.Opening, 1, false},
		"unowned, no gateway reaches it": {model.Ownership{State: model.Unowned}, false, func(v *decide.LeaderView) {
			ends(v, 1, start)
		}, start, model.Unowned, 0, true},
		"locked": {acquiring, false, func(v *decide.LeaderView) { observed(v, ref(1), model.VolumeLocked, 3, 7) }, start,
			model.Opening, 4, false},
		"locked by an older order": {acquiring, false, func(v *decide.LeaderView) {
			observed(v, ref(1), model.VolumeLocked, 3, 6)
		}, start, model.Acquiring, 3, false},
		"the candidate cannot lock": {acquiring, false, func(v *decide.LeaderView) {
			observed(v, ref(1), model.VolumeFailed, 3, 7)
		}, start, model.Orphaned, 3, false},
		"the candidate is gone": {acquiring, false, func(v *decide.LeaderView) { ends(v, 1, start) }, start,
			model.Orphaned, 3, false},
		"serving": {opening, false, func(v *decide.LeaderView) { observed(v, ref(1), model.VolumeServing, 3, 7) }, start,
			model.Owned, 3, false},
		"serving in an earlier epoch": {opening, false, func(v *decide.LeaderView) {
			observed(v, ref(1), model.VolumeServing, 2, 5)
		}, start, model.Opening, 3, false},
		"cannot open": {opening, true, func(v *decide.LeaderView) { observed(v, ref(1), model.VolumeFailed, 3, 7) }, start,
			model.Orphaned, 3, false},
		"opens without end, rbd: no gateway is replaced without a fence": {opening, true, nil, late, model.Opening, 3, true},
		"owned": {owned, false, nil, late, model.Owned, 3, false},
		"the owner has no stream: it serves on (R3)": {owned, false, func(v *decide.LeaderView) { ends(v, 1, start) }, late,
			model.Owned, 3, false},
		"the owner restarted, local: the lock first": {owned, false, func(v *decide.LeaderView) { connected(v, 1, "j") },
			start, model.Acquiring, 3, false},
		"the owner restarted, rbd: it is fenced": {owned, true, func(v *decide.LeaderView) { connected(v, 1, "j") }, start,
			model.Fencing, 4, false},
		"the owner lost it": {owned, true, func(v *decide.LeaderView) { observed(v, ref(1), model.VolumeFenced, 3, 7) },
			start, model.Orphaned, 3, false},
		"released in an earlier epoch": {owned, false, func(v *decide.LeaderView) {
			observed(v, ref(1), model.VolumeReleased, 2, 5)
		}, start, model.Owned, 3, false},
		"released": {moving, true, func(v *decide.LeaderView) { observed(v, ref(1), model.VolumeReleased, 3, 7) }, start,
			model.Opening, 4, false},
		"released, but the next owner is gone": {moving, true, func(v *decide.LeaderView) {
			observed(v, ref(1), model.VolumeReleased, 3, 7)
			ends(v, 2, start)
		}, start, model.Owned, 3, false},
		"moves":                   {moving, true, nil, start.Add(decide.MoveTimeout - 1), model.Moving, 3, false},
		"moves for too long (R7)": {moving, false, nil, start.Add(decide.MoveTimeout), model.Owned, 3, false},
		"moving, and the owner restarted, local": {moving, false, func(v *decide.LeaderView) { connected(v, 1, "j") }, start,
			model.Owned, 3, false},
		"an epoch that the store has lost, served": {owned, true, func(v *decide.LeaderView) {
			observed(v, ref(2), model.VolumeServing, 9, 20)
		}, start, model.Owned, 9, false},
		"an epoch that the store has lost, local": {owned, false, func(v *decide.LeaderView) {
			observed(v, ref(1), model.VolumeFenced, 9, 20)
		}, start, model.Orphaned, 9, false},
		"an epoch that the store has lost, rbd, and no owner is known": {owned, true, func(v *decide.LeaderView) {
			observed(v, ref(2), model.VolumeFenced, 9, 20)
		}, start, model.Owned, 3, true},
		"restored, and the owner serves": {lost, true, func(v *decide.LeaderView) {
			observed(v, ref(1), model.VolumeServing, 3, 7)
		}, late, model.Owned, 3, false},
		"restored, and the owner may yet say that it serves": {lost, true, nil, start.Add(decide.OpenTimeout - 1),
			model.Owned, 3, false},
		"restored, and the owner says nothing": {lost, true, nil, late, model.Opening, 1001, false},
		"restored, and the owner has no stream": {lost, true, func(v *decide.LeaderView) { ends(v, 1, start) }, late,
			model.Owned, 3, false},
		"restored, and the former owner reports nothing while it releases the volume": {lostMoving, true, func(v *decide.LeaderView) {
			v.Delete(v.Targets["t"], term)
		}, late, model.Opening, 1001, false},
		"restored, local, and the owner restarted": {lost, false, func(v *decide.LeaderView) { connected(v, 1, "j") }, start,
			model.Acquiring, 1001, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := known(2)
			exported(v, c.ownership, c.rbd)
			if c.happens != nil {
				c.happens(v)
			}
			got, decision := next(t, v, c.now)
			if got.State != c.state || got.Epoch != c.epoch || decision.NoOwner != c.noOwner {
				t.Errorf("%s in epoch %d, no owner: %v; wanted %s in %d, %v", got.State, got.Epoch, decision.NoOwner, c.state, c.epoch,
					c.noOwner)
			}
		})
	}
}

func TestAChangeOfOwnershipHoldsForTheOneItWasDecidedOn(t *testing.T) {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7}, true)
	connected(v, 1, "j")
	decision := v.DecideVolume("v", start)
	a := decision.Actions[len(decision.Actions)-1]
	for name, change := range map[string]func(*model.Volume){
		"another order":  func(v *model.Volume) { v.Status.Ownership.Order++ },
		"another volume": func(v *model.Volume) { v.Meta.UID = "of the same name" },
	} {
		volume := *v.Volumes["v"]
		change(&volume)
		if _, err := as[*decide.ChangeOwner](a).Owning(&volume); !errors.Is(err, decide.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := as[*decide.ChangeOwner](a).Owning(v.Volumes["v"]); err != nil {
		t.Error(err)
	}
}

func TestAGatewayThatFailedIsTriedAgainLaterAndLater(t *testing.T) {
	v := known(1)
	opening := model.Ownership{State: model.Opening, Epoch: 3, Owner: ref(1), Order: 7, Since: start}
	exported(v, opening, false)
	observed(v, ref(1), model.VolumeFailed, 3, 7)
	_, decision := next(t, v, start)
	decision.Actions[0].About().Done(v, start)
	stored(v, model.Ownership{State: model.Orphaned, Epoch: 3, Order: 8}, 2)
	if got, decision := next(t, v, start); got.State != model.Orphaned || decision.Wait != decide.MinRetry {
		t.Errorf("at once: %s, again after %s", got.State, decision.Wait)
	}
	if got, _ := next(t, v, start.Add(decide.MinRetry)); got.State != model.Acquiring {
		t.Errorf("later: %s", got.State)
	}
}

func TestAReplacedGatewayStaysInThePathSetUntilItsVolumesHaveMoved(t *testing.T) {
	v := known(3)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1)}, true)
	v.TakePlan(placement.Assignment{Targets: []placement.TargetPaths{{Target: "t", Gateways: []uint32{2, 3}}},
		Volumes: []placement.VolumeOwner{{Volume: "v", Owner: 2}}})
	pathSet := func() []uint32 {
		t.Helper()
		target := *v.Targets["t"]
		for _, a := range v.DecideTarget("t", start).Actions {
			if as[*decide.AddPorts](a) != nil {
				target.Status.Ports = append(target.Status.Ports, as[*decide.AddPorts](a).Ports...)
			} else {
				modifies(a, &target)
			}
		}
		target.Meta.Version++
		v.Put(&target)
		return target.Status.PathSet
	}
	pathSet() // the ports come first
	if got := pathSet(); len(got) != 3 {
		t.Errorf("path set %v while gateway 1 owns the volume", got)
	}
	if got, _ := next(t, v, start); got.State != model.Moving || got.Next != ref(2) {
		t.Errorf("the volume is %+v", got)
	}
	stored(v, model.Ownership{State: model.Owned, Epoch: 4, Owner: ref(2)}, 2)
	if got := pathSet(); len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("path set %v after it has moved", got)
	}
}
