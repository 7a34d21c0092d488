package decide_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// deletedOnALostNode returns a view with a volume that was unmapped and deleted after its owner, alone on its node, was found
// dead.
func deletedOnALostNode(policy model.ReclaimPolicy, ownership model.Ownership) *decide.LeaderView {
	v := onDevices()
	deleted := start
	volume := *v.Volumes["v"]
	volume.Meta.Version, volume.Meta.DeleteTime = 2, &deleted
	volume.Spec.ReclaimPolicy = policy
	volume.Status.CapacityBytes, volume.Status.Ownership = volume.Spec.SizeBytes, ownership
	v.Put(&volume)
	ends(v, 1, start)
	dead := *v.Gateways["gw-1"]
	dead.Meta.Version, dead.Status.Health = 9, model.GatewayDead
	v.Put(&dead)
	return v
}

// goes executes the decisions on a volume until there are no more, and reports whether it was removed.
func goes(t *testing.T, v *decide.LeaderView, now time.Time) (removed bool) {
	t.Helper()
	for range 10 {
		volume := *v.Volumes["v"]
		decision := v.DecideVolume("v", now)
		for _, a := range decision.Actions {
			switch {
			case as[*decide.Remove](a) != nil:
				return true
			case as[*decide.ChangeOwner](a) != nil:
				changed, err := as[*decide.ChangeOwner](a).Owning(&volume)
				if err != nil {
					t.Fatal(err)
				}
				volume.Status.Ownership = changed
			case as[*decide.Modify](a) != nil:
				modifies(a, &volume)
			}
		}
		if len(decision.Actions) == 0 {
			return false
		}
		volume.Meta.Version++
		v.Put(&volume)
	}
	t.Fatal("it is decided on without end")
	return false
}

func TestADeletedVolumeWhoseDataIsRetainedGoesThoughItsNodeIsLost(t *testing.T) {
	for name, ownership := range map[string]model.Ownership{
		"owned":                        {State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7},
		"opening":                      {State: model.Opening, Epoch: 3, Owner: ref(1), Order: 7},
		"moving without a destination": {State: model.Moving, Epoch: 3, Owner: ref(1), Order: 7},
		"its acquirer died":            {State: model.Acquiring, Epoch: 3, Owner: model.GatewayRef{Number: 1, Incarnation: "h"}, Next: ref(1), Order: 7},
		"its first acquirer died":      {State: model.Acquiring, Epoch: 0, Next: ref(1), Order: 7},
	} {
		t.Run(name, func(t *testing.T) {
			if v := deletedOnALostNode(model.ReclaimRetain, ownership); !goes(t, v, start) {
				t.Errorf("it stays: %+v", v.Volumes["v"].Status)
			}
		})
	}
}

func TestADeletedVolumeOfALostNodeWaitsForAGatewayThereToDeleteItsDataAndSaysSo(t *testing.T) {
	v := deletedOnALostNode(model.ReclaimDelete, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7})
	if goes(t, v, start) {
		t.Fatal("it went, and its data is there")
	}
	status := v.Volumes["v"].Status
	if status.Ownership.State != model.Unowned || status.Ownership.Epoch != 3 {
		t.Fatalf("%+v", status.Ownership)
	}
	condition := conditionOf(t, status.Conditions, model.ConditionProgressing)
	if condition.Status != model.ConditionTrue || condition.Reason != "NoGateway" || !strings.Contains(condition.Message, "no gateway of node node-1") {
		t.Fatalf("%+v", condition)
	}
	back := connection(1, "j")
	back.Version = term + 9
	v.Observe(back, start)
	jobs := jobsOf(v.DecideVolume("v", start))
	if len(jobs) != 1 || jobs[0].Action != model.JobDeleteImage || jobs[0].Gateway != 1 {
		t.Fatalf("the node is back: %+v", jobs)
	}
}

// This applies only if no gateway can take the lock. Otherwise that gateway takes the lock first, and then releases the volume.
func TestAVolumeWithoutTargetIsTakenFromADeadOwnerByAnotherGatewayOfItsNode(t *testing.T) {
	v := deletedOnALostNode(model.ReclaimRetain, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7})
	v.Put(&model.Gateway{Meta: model.Meta{Name: "gw-2", UID: "2", Version: 1}, Spec: model.GatewaySpec{Node: "node-1"},
		Status: model.GatewayStatus{Number: 2, Incarnation: "i", Health: model.GatewayReady}})
	connected(v, 2, "i")
	ownership, _ := next(t, v, start)
	if ownership.State != model.Acquiring || ownership.Next != ref(2) {
		t.Fatalf("%+v", ownership)
	}
	ownership.Order = 8
	storeOwnership(v, ownership)
	observed(v, ref(2), model.VolumeFailed, 3, 8) // another process has the lock
	ownership, decision := next(t, v, start)
	if ownership.State != model.Owned {
		t.Fatalf("%+v", ownership)
	}
	decision.Actions[0].About().Done(v, start)
	ownership.Order = 9
	storeOwnership(v, ownership)
	if ownership, decision := next(t, v, start); ownership.State != model.Owned || decision.Wait == 0 {
		t.Errorf("it does not wait for whose turn comes again: %+v, wait %v", ownership, decision.Wait)
	}
}

func storeOwnership(v *decide.LeaderView, ownership model.Ownership) {
	volume := *v.Volumes["v"]
	volume.Meta.Version++
	volume.Status.Ownership = ownership
	v.Put(&volume)
}

func TestAnExportedVolumeOfALostNodeKeepsItsOwner(t *testing.T) {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7}, false)
	ends(v, 1, start)
	dead := *v.Gateways["gw-1"]
	dead.Meta.Version, dead.Status.Health = 9, model.GatewayDead
	v.Put(&dead)
	if ownership, decision := next(t, v, start); ownership.State != model.Owned || !decision.NoOwner {
		t.Errorf("%+v, no owner: %v", ownership, decision.NoOwner)
	}
	volume, _ := decidedVolume(v, "v")
	if ready := conditionOf(t, volume.Status.Conditions, model.ConditionReady); ready.Reason != model.ReasonOwnerDead || !volume.Stranded() {
		t.Errorf("hosts wait in vain: %+v", ready)
	}
}

// Another gateway reports an epoch that the store has lost, and no longer serves it.
func TestAVolumeWhoseEpochTheStoreHasLostIsNotReady(t *testing.T) {
	v := known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 3, Owner: ref(1), Order: 7}, true)
	observed(v, ref(2), model.VolumeFenced, 9, 20)
	volume, _ := decidedVolume(v, "v")
	if ready := conditionOf(t, volume.Status.Conditions, model.ConditionReady); ready.Status != model.ConditionFalse || ready.Reason != "EpochFromGateway" {
		t.Errorf("%+v", ready)
	}
}
