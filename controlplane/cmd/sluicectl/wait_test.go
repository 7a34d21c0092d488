package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func TestCreateWaitsUntilTheVolumeHasItsCapacity(t *testing.T) {
	l := start(t)
	l.house()
	r := l.begin(t.Context(), "volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait", "-o", "json")
	r.err.until(t, "no capacity is reported yet")
	if r.out.String() != "" {
		t.Fatalf("printed before it was there: %s", r.out)
	}
	modify(l, l.Volumes, "orders", func(v *model.Volume) { v.Status.CapacityBytes = 1 << 30 })
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), `"capacityBytes": "1073741824"`) {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestATimeOutIsExitCode8AndNamesWhatIsMissing(t *testing.T) {
	l := start(t)
	l.house()
	_, err := l.run("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait", "--timeout", "500ms")
	if exitCode(err) != exitDeadlineIsOver || !strings.Contains(err.Error(), "volume orders: no capacity is reported yet") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

func TestDeleteWaitsUntilAllAreGone(t *testing.T) {
	l := start(t)
	l.house()
	for _, name := range []string{"a", "b"} {
		l.must("volume", "create", name, "--pool", "nvme", "--size", "1Gi")
	}
	r := l.begin(t.Context(), "volume", "delete", "a", "b", "--wait")
	r.err.until(t, "0 of 2")
	for _, name := range []string{"a", "b"} {
		volume, err := l.Volumes.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Volumes.Remove(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "volume b is gone") {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestWaitingForWhatIsDeletedMeanwhileEndsAsNotFound(t *testing.T) {
	l := start(t)
	l.house()
	r := l.begin(t.Context(), "volume", "create", "orders", "--pool", "nvme", "--size", "1Gi", "--wait")
	r.err.until(t, "no capacity")
	volume, err := l.Volumes.Delete(t.Context(), "orders", store.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Volumes.Remove(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	if err := <-r.ended; exitCode(err) != exitNotFound {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}

func TestDrainWaitsUntilDrainedAndCountsVolumes(t *testing.T) {
	l := start(t)
	l.house()
	for i := range 4 {
		name := fmt.Sprintf("v-%d", i)
		l.must("volume", "create", name, "--pool", "nvme", "--size", "1Gi")
		modify(l, l.Volumes, name, func(v *model.Volume) {
			v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
		})
	}
	r := l.begin(t.Context(), "gateway", "drain", "gw-1", "--wait")
	r.err.until(t, "0 of 4: gateway gw-1: its health is New")
	modify(l, l.Volumes, "v-0", func(v *model.Volume) { v.Status.Ownership.Owner.Number = 2 })
	r.err.until(t, "1 of 4")
	modify(l, l.Gateways, "gw-1", func(g *model.Gateway) { g.Status.Health = model.GatewayDrained })
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "gateway gw-1 drain is complete") {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestAnInterruptedWaitSaysWhatGoesOn(t *testing.T) {
	l := start(t)
	l.house()
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
	l.house()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	refused := func(why string) {
		modify(l, l.Volumes, "orders", func(v *model.Volume) {
			v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
			v.Status.MoveRequest, v.Status.MoveRefusal = nil, &model.MoveRefusal{Reason: "MoveRefused", Message: why}
			v.Status.Conditions = []model.Condition{{Type: model.ConditionProgressing, Status: model.ConditionFalse,
				Reason: "MoveRefused", Message: why}}
		})
	}
	refused("what an earlier request came to")
	r := l.begin(t.Context(), "volume", "move", "orders", "--wait")
	r.err.until(t, "its owner gateway number 1")
	refused("gateway gw-2 has no stream")
	err := <-r.ended
	if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "volume orders: it does not move: gateway gw-2 has no stream") {
		t.Fatalf("exit code %d: %v", exitCode(err), err)
	}
}
