package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestCreateWaitsUntilTheVolumeHasItsCapacity(t *testing.T) {
	l := start(t)
	l.prerequisites()
	r := l.begin(t.Context(), "volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait", "-o", "json")
	r.err.until(t, "no capacity is reported yet")
	if r.out.String() != "" {
		t.Fatalf("printed before it was there: %s", r.out)
	}
	modify(l, "orders", func(v *model.Volume) { v.Status.CapacityBytes = 1 << 30 })
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), `"capacityBytes": "1073741824"`) {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestATimeoutEndsWithExitCode8AndNamesTheMissingGoals(t *testing.T) {
	l := start(t)
	l.prerequisites()
	_, err := l.run("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait", "--timeout", "500ms")
	if exitCode(err) != exitDeadlineIsOver || !strings.Contains(err.Error(), "volume orders: no capacity is reported yet") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

func TestDeleteWaitsUntilAllAreGone(t *testing.T) {
	l := start(t)
	l.prerequisites()
	for _, name := range []string{"a", "b"} {
		l.must("volume", "create", name, "--pool", "nvme", "--size", "1Gi")
	}
	r := l.begin(t.Context(), "volume", "delete", "a", "b", "--wait")
	r.err.until(t, "0 of 2")
	l.remove("a")
	l.remove("b")
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "volume b is gone") {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

// replacedBy asserts the end of a wait: exit code 9, the other request, and a valid command.
func (r *running) replacedBy(t *testing.T, instead, look string) {
	t.Helper()
	select {
	case err := <-r.ended:
		if exitCode(err) != exitReplaced || !strings.Contains(err.Error(), instead) || !strings.HasSuffix(err.Error(), "; it is shown by: "+look) {
			t.Fatalf("exit code %d: %v", exitCode(err), err)
		}
	case <-t.Context().Done():
		t.Fatalf("it waits on: %s", r.err)
	}
}

func (l *live) remove(volume string) {
	l.t.Helper()
	got, err := l.Volumes.Get(l.t.Context(), volume)
	if err == nil {
		storetest.During(l.t, l.Store, func(term *store.Term) { err = term.Remove(l.t.Context(), got) })
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func TestWaitingForAVolumeEndsAtOnceWhenAnotherRequestDeletesIt(t *testing.T) {
	l := start(t)
	l.prerequisites()
	r := l.begin(t.Context(), "volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait")
	r.err.until(t, "no capacity")
	l.must("volume", "delete", "orders")
	r.replacedBy(t, "volume orders: this is not waited for any more: another request deletes it",
		"sluicectl volume describe orders")
}

func TestWaitingForAnObjectThatIsGoneOrAnotherByNowEndsAtOnce(t *testing.T) {
	snapshot := func(uid string) proto.Message { return &pb.Snapshot{Meta: &pb.ObjectMeta{Name: "monday", Uid: uid}} }
	volume := func(uid string) proto.Message {
		return &pb.Volume{Meta: &pb.ObjectMeta{Name: "orders", Uid: uid}, Status: &pb.VolumeStatus{RollingBack: true}}
	}
	for name, c := range map[string]struct {
		made          func(uid string) proto.Message
		missing       func(proto.Message) string
		again         bool
		instead, look string
	}{
		"snapshot create, gone":      {snapshot, unmadeSnapshot, false, "it was deleted", "sluicectl snapshot list"},
		"snapshot rollback, another": {volume, unrolled, true, "made another one of that name", "sluicectl volume describe orders"},
	} {
		t.Run(name, func(t *testing.T) {
			kind := kindNamed(string(c.made("").ProtoReflect().Descriptor().Name()))
			w := newWaiting([]goal{{kind: kind, from: c.made("a"), missing: c.missing}})
			w.apply(change{kind: pb.ChangeType_CHANGE_TYPE_DELETED, object: c.made("a")})
			if c.again {
				w.apply(change{kind: pb.ChangeType_CHANGE_TYPE_PUT, object: c.made("b")})
			}
			_, err := w.checkGoals(newProgress(io.Discard))
			r := &running{ended: make(chan error, 1)}
			r.ended <- err
			r.replacedBy(t, c.instead, c.look)
		})
	}
}

func TestWaitingForASizeEndsWhenAnotherRequestChangesIt(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	modify(l, "orders", func(v *model.Volume) { v.Status.CapacityBytes = 1 << 30 })
	r := l.begin(t.Context(), "volume", "resize", "orders", "--size", "10Gi", "--wait")
	r.err.until(t, "hosts see 1Gi of 10Gi")
	l.must("volume", "resize", "orders", "--size", "20Gi")
	r.replacedBy(t, "another request asked for 20Gi meanwhile, not 10Gi", "sluicectl volume describe orders")
}

func TestWaitingForAMoveEndsWhenAnotherRequestReplacesIt(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	l.must("target", "create", "db", "--lun", "0=orders")
	modify(l, "db", func(o *model.Target) { o.Status.PathSet = []uint32{1, 2} })
	modify(l, "orders", func(v *model.Volume) {
		v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
	})
	r := l.begin(t.Context(), "volume", "move", "orders", "--to", "gw-2", "--wait")
	r.err.until(t, "its owner gateway is gw-1")
	modify(l, "orders", func(v *model.Volume) { // it is in progress
		v.Status.MovedAt, v.Status.MoveRequest, v.Status.Move = v.Status.MoveRequest.Since, nil, &model.RequestedMove{To: 2}
		v.Status.Ownership.State = model.Moving
	})
	r.err.until(t, "its ownership is Moving")
	l.must("volume", "move", "orders", "--to", "gw-1")
	r.replacedBy(t, "moves it to gateway gw-1", "sluicectl volume describe orders")
}

func TestWaitingForADrainEndsWhenAnotherRequestUndrainsAndTheOtherWayRound(t *testing.T) {
	l := start(t)
	l.prerequisites()
	drain := l.begin(t.Context(), "gateway", "drain", "gw-1", "--wait")
	drain.err.until(t, "its health is New")
	undrain := l.begin(t.Context(), "gateway", "undrain", "gw-1", "--wait")
	drain.replacedBy(t, "ended its drain", "sluicectl gateway describe gw-1")
	undrain.err.until(t, "its health is New")
	l.must("gateway", "drain", "gw-1")
	undrain.replacedBy(t, "drains it", "sluicectl gateway describe gw-1")
}

func TestWaitingForANewGatewayEndsWhenAnotherRequestDrainsIt(t *testing.T) {
	l := start(t)
	l.prerequisites()
	r := l.begin(t.Context(), "gateway", "create", "gw-3", "--node", "node-3", "--portal", "fabric=red,listen=192.0.2.3:3260",
		"--forwarding-address", "192.0.2.3:3261", "--wait")
	r.err.until(t, "its health is New")
	l.must("gateway", "drain", "gw-3")
	r.replacedBy(t, "drains it", "sluicectl gateway describe gw-3")
}

func TestDrainWaitsUntilDrainedAndCountsVolumes(t *testing.T) {
	l := start(t)
	l.prerequisites()
	for i := range 4 {
		name := fmt.Sprintf("v-%d", i)
		l.must("volume", "create", name, "--pool", "nvme", "--size", "1Gi")
		modify(l, name, func(v *model.Volume) {
			v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
		})
	}
	r := l.begin(t.Context(), "gateway", "drain", "gw-1", "--wait")
	r.err.until(t, "0 of 4: gateway gw-1: its health is New")
	modify(l, "v-0", func(v *model.Volume) { v.Status.Ownership.Owner.Number = 2 })
	r.err.until(t, "1 of 4")
	modify(l, "gw-1", func(g *model.Gateway) { g.Status.Health = model.GatewayDrained })
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "gateway gw-1 drain is complete") {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestAnInterruptedWaitSaysWhatGoesOn(t *testing.T) {
	l := start(t)
	l.prerequisites()
	ctx, interrupt := context.WithCancel(t.Context())
	r := l.begin(ctx, "volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait")
	r.err.until(t, "no capacity")
	interrupt()
	if err := <-r.ended; exitCode(err) != exitOther || !strings.HasPrefix(err.Error(), "interrupted; ") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

func TestWaitingForAMoveThatIsRefusedEndsWithExitCode5AndSaysWhy(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	refused := func(why string) {
		modify(l, "orders", func(v *model.Volume) {
			v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
			v.Status.MoveRequest, v.Status.Refusal = nil, &model.Refusal{Reason: "MoveRefused", Message: why}
			v.Status.Conditions = []model.Condition{{Type: model.ConditionProgressing, Status: model.ConditionFalse,
				Reason: "MoveRefused", Message: why}}
		})
	}
	refused("the result of an earlier request")
	r := l.begin(t.Context(), "volume", "move", "orders", "--wait")
	r.err.until(t, "its owner gateway is gw-1")
	refused("gateway gw-2 has no stream")
	err := <-r.ended
	if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "volume orders: it does not move: gateway gw-2 has no stream") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

func TestWaitingForARollbackThatFailsEndsWithExitCode5AndSaysWhy(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	l.must("snapshot", "create", "monday", "--volume", "orders")
	modify(l, "monday", func(s *model.Snapshot) { s.Status.Ready = true })
	failed := func(why string) {
		modify(l, "orders", func(v *model.Volume) {
			v.Status.RollBack, v.Status.Refusal = nil, &model.Refusal{Reason: "RollBackFailed", Message: why}
			v.Status.Conditions = []model.Condition{{Type: model.ConditionProgressing, Status: model.ConditionFalse,
				Reason: "RollBackFailed", Message: why}}
		})
	}
	failed("the result of an earlier request")
	r := l.begin(t.Context(), "snapshot", "rollback", "monday", "--wait")
	r.err.until(t, "it is being rolled back")
	failed("the pool can't go back")
	err := <-r.ended
	if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "volume orders: it was not rolled back, and is what it was "+
		"before: the pool can't go back") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

// A pool without reflink can never take one.
func TestWaitingForASnapshotThatCanNeverBeTakenEndsAtOnceWithExitCode5(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	r := l.begin(t.Context(), "snapshot", "create", "monday", "--volume", "orders", "--wait")
	r.err.until(t, "it has not been taken yet")
	modify(l, "monday", func(s *model.Snapshot) {
		s.Status.Conditions = []model.Condition{{Type: model.ConditionReady, Status: model.ConditionFalse, Reason: "Unsupported",
			Message: "ext4 has no reflink"}}
	})
	if err := <-r.ended; exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "snapshot monday: it cannot be made: ext4 has no reflink") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

// Before that, a host that logs in gets NOT READY.
func TestATargetIsMadeOnceItsVolumesAreServed(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	r := l.begin(t.Context(), "target", "create", "shop", "--lun", "0=orders", "--paths", "1", "--wait")
	r.err.until(t, "it has 0 of 1 paths")
	modify(l, "shop", func(target *model.Target) {
		target.Status.PathSet = []uint32{1}
		target.Status.Applied = map[uint32]string{1: target.Export()}
	})
	r.err.until(t, "volume orders: no gateway serves it")
	modify(l, "orders", func(v *model.Volume) {
		v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
	})
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "target shop created") {
		t.Fatalf("%v\n%s", err, r.out)
	}
}
