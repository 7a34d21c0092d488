package leader_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

func TestAVolumeIsMadeExportedOwnedAndTakenAwayAgain(t *testing.T) {
	h := open(t)
	h.replica("one")
	a, b := h.gateway("gw-1", "a"), h.gateway("gw-2", "b")
	h.export("orders")
	first(h, "orders", a, b)
	target, err := h.Targets.Get(t.Context(), "orders")
	if err != nil || len(target.Status.PathSet) != 2 || len(target.Status.Ports) != 2 {
		t.Fatalf("%+v, %v", target.Status, err)
	}
	if _, err := h.Targets.Delete(t.Context(), "orders", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	vanishes(h, h.Targets, "orders")
	if _, err := h.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	vanishes(h, h.Volumes, "orders")
}

func TestAVolumeGrowsAndIsSnapshottedByItsOwner(t *testing.T) {
	h := open(t)
	h.replica("one")
	a, b := h.gateway("gw-1", "a"), h.gateway("gw-2", "b")
	h.export("orders")
	first(h, "orders", a, b)
	v, _ := h.Volumes.Get(t.Context(), "orders")
	v.Spec.SizeBytes = 8 << 20
	v.Meta.Version = 0
	if err := h.Volumes.Update(t.Context(), v, false); err != nil {
		t.Fatal(err)
	}
	eventually(h, h.Volumes, "orders", func(v *model.Volume) bool { return v.Status.CapacityBytes == 8<<20 })
	must(h, h.Snapshots, &model.Snapshot{Meta: model.Meta{Name: "monday"}, Spec: model.SnapshotSpec{Volume: "orders"}})
	eventually(h, h.Snapshots, "monday", func(s *model.Snapshot) bool {
		return s.Status.Ready && s.Status.SizeBytes == 8<<20 && s.Status.TakenTime != nil
	})
	if _, err := h.Snapshots.Delete(t.Context(), "monday", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	vanishes(h, h.Snapshots, "monday")
}

func TestAnOwnerThatItsPeerFindsRefusedIsReplaced(t *testing.T) {
	h := open(t)
	h.replica("one")
	a, b := h.gateway("gw-1", "a"), h.gateway("gw-2", "b")
	h.export("orders")
	owner, other := first(h, "orders", a, b)
	owner.stop()
	if err := other.ObservePeer(t.Context(), model.PeerReport{Peer: owner.Ref, Reach: model.PeerRefused}); err != nil {
		t.Fatal(err)
	}
	eventually(h, h.Volumes, "orders", ownedBy(other.Ref))
	h.events.await(t, "Gateway Dead", 1)
	h.events.await(t, "Volume Owned", 2) // it is recorded after the measurement
	families, err := h.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "sluice_orchestrator_failover_duration_seconds" {
			if n := family.GetMetric()[0].GetHistogram().GetSampleCount(); n != 1 {
				t.Errorf("%d failovers were measured", n)
			}
			return
		}
	}
	t.Error("failovers are not measured")
}

func TestAnOwnerWithoutAStreamThatItsPeerHearsKeepsItsVolumes(t *testing.T) {
	h := open(t)
	h.replica("one")
	a, b := h.gateway("gw-1", "a"), h.gateway("gw-2", "b")
	h.export("orders")
	owner, other := first(h, "orders", a, b)
	if err := other.ObservePeer(t.Context(), model.PeerReport{Peer: owner.Ref, Reach: model.PeerConnected}); err != nil {
		t.Fatal(err)
	}
	owner.stop()
	name := fmt.Sprintf("gw-%d", owner.Ref.Number)
	eventually(h, h.Gateways, name, health(model.GatewayDisconnected))
	eventually(h, h.Volumes, "orders", func(v *model.Volume) bool { // its condition states that, and nothing else changes
		for _, c := range v.Status.Conditions {
			if c.Type == model.ConditionDegraded && c.Status == model.ConditionTrue {
				return ownedBy(owner.Ref)(v)
			}
		}
		return false
	})
}

func TestARestartedOwnerTakesItsVolumeUnderAnotherIncarnation(t *testing.T) {
	h := open(t)
	h.replica("one")
	a := h.gateway("gw-1", "a")
	h.export("orders")
	eventually(h, h.Volumes, "orders", ownedBy(a.Ref))
	a.stop()
	again := h.gateway("gw-1", "b")
	eventually(h, h.Volumes, "orders", func(v *model.Volume) bool {
		return ownedBy(again.Ref)(v) && v.Status.Ownership.Epoch == 2
	})
}

func TestAMoveRequestIsCarriedOutAndADrainEmptiesAGateway(t *testing.T) {
	h := open(t)
	h.replica("one")
	a, b := h.gateway("gw-1", "a"), h.gateway("gw-2", "b")
	h.export("orders")
	owner, other := first(h, "orders", a, b)
	if _, err := h.RequestMove(t.Context(), "orders", fmt.Sprintf("gw-%d", other.Ref.Number), false); err != nil {
		t.Fatal(err)
	}
	eventually(h, h.Volumes, "orders", func(v *model.Volume) bool {
		return ownedBy(other.Ref)(v) && v.Status.MoveRequest == nil
	})
	one := &model.Target{}
	one, _ = h.Targets.Get(t.Context(), "orders")
	one.Spec.Paths, one.Meta.Version = 1, 0
	if err := h.Targets.Update(t.Context(), one, false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.RequestDrain(t.Context(), fmt.Sprintf("gw-%d", other.Ref.Number), true, false); err != nil {
		t.Fatal(err)
	}
	eventually(h, h.Gateways, fmt.Sprintf("gw-%d", other.Ref.Number), health(model.GatewayDrained))
	eventually(h, h.Volumes, "orders", ownedBy(owner.Ref))
}

func TestADeletedGatewayThatHoldsNothingIsRemoved(t *testing.T) {
	h := open(t)
	h.replica("one")
	if _, err := h.Gateways.Delete(t.Context(), "gw-2", store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	vanishes(h, h.Gateways, "gw-2")
}

func TestTheNextReplicaTakesOverWhereTheLeaderStopped(t *testing.T) {
	h := open(t)
	stop := h.replica("one")
	a, b := h.gateway("gw-1", "a"), h.gateway("gw-2", "b")
	h.export("orders")
	owner, other := first(h, "orders", a, b)
	h.replica("two")
	stop()
	owner.stop()
	if err := other.ObservePeer(t.Context(), model.PeerReport{Peer: owner.Ref, Reach: model.PeerRefused}); err != nil {
		t.Fatal(err)
	}
	// The term of replica two may begin at any moment. Reports from before it do not count, so they are repeated as gateways do.
	ctx, cancel := context.WithCancel(t.Context())
	var told sync.WaitGroup
	told.Go(func() {
		for ctx.Err() == nil {
			_ = other.ObservePeer(ctx, model.PeerReport{Peer: owner.Ref, Reach: model.PeerRefused})
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	eventually(h, h.Volumes, "orders", ownedBy(other.Ref))
	cancel()
	told.Wait()
	leader, err := h.Leader(t.Context())
	if err != nil || leader != "two" {
		t.Errorf("leader %q, %v", leader, err)
	}
}

func TestASessionBeyondTheLimitIsAskedToLeaveThroughItsGateway(t *testing.T) {
	h := open(t)
	const initiator = "iqn.2026-11.example:web"
	login := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	host := &model.Host{Meta: model.Meta{Name: "web"}, Spec: model.HostSpec{Initiators: []string{initiator}, MaxSessions: 1,
		AllowUnauthenticated: true}}
	must(h, h.Hosts, host)
	a, b := h.gateway("gw-1", "a"), h.gateway("gw-2", "b")
	for n, g := range []*gateway{a, b} {
		if err := g.StoreSessions(t.Context(), true, []*model.Session{{Gateway: fmt.Sprintf("gw-%d", n+1), TSIH: uint32(n + 1),
			HostUID: host.Meta.UID, TargetIQN: "iqn.2026-11.example:t", Initiator: initiator, ISID: "400000000000",
			LoginTime: login.Add(time.Duration(n) * time.Second)}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	h.replica("one")
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := h.WatchEvictions(ctx, b.Ref.Number, func(tsihs []uint32) error {
		if !slices.Equal(tsihs, []uint32{2}) {
			t.Errorf("asked: %v", tsihs)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Fatalf("no gateway was asked to leave: %v", err)
	}
	h.events.await(t, "Host SessionLimit", 1)
}

func TestAppliedReportsOfGatewaysAppearInTheTargetStatus(t *testing.T) {
	h := open(t)
	h.replica("one")
	a, b := h.gateway("gw-1", "a"), h.gateway("gw-2", "b")
	h.export("orders")
	first(h, "orders", a, b)
	target, err := h.Targets.Get(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ObserveApplied(t.Context(), []model.AppliedReport{
		{Kind: model.KindTarget, UID: target.Meta.UID, Export: target.Export()}}); err != nil {
		t.Fatal(err)
	}
	if err := b.ObserveApplied(t.Context(), []model.AppliedReport{
		{Kind: model.KindTarget, UID: target.Meta.UID, Refused: "no luck"}}); err != nil {
		t.Fatal(err)
	}
	h.events.await(t, "Target NotApplied", 1)
	eventually(h, h.Targets, "orders", func(t *model.Target) bool {
		return t.AppliedBy(a.Ref.Number) && !t.AppliedBy(b.Ref.Number)
	})
}
