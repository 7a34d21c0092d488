package decide_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// recorded sets all clients of an incarnation in the pool, as of a version.
func recorded(v *decide.LeaderView, by model.GatewayRef, version int64, clients ...model.RadosClient) {
	v.PutRadosClients(&model.RadosClients{PoolUID: "p", Gateway: by, Clients: clients, Version: version})
}

var (
	unfenced = model.RadosClient{Client: "c1"}
	fenced   = model.RadosClient{Client: "c1", Fenced: true}
	shut     = model.Ownership{State: model.Fencing, Epoch: 4, Fence: ref(1), Order: 8, Since: start}
)

// fencing returns a view of a volume in Ceph whose owner gw-1 has died.
func fencing(gateways int) *decide.LeaderView {
	v := known(gateways)
	exported(v, shut, true)
	recorded(v, ref(3), 1, model.RadosClient{Client: "c3"})
	ends(v, 1, start)
	return v
}

// job returns the job that a decision on the pool assigns; nil: none.
func job(v *decide.LeaderView, now time.Time) *model.Job {
	for _, a := range v.DecidePool("pool", now).Actions {
		if job := jobOf(a); job != nil && job.Action == model.JobFenceClients {
			return job
		}
	}
	return nil
}

// R2: the volume gets no owner before every client that its owner has recorded is blocklisted, and then gets one at once.
func TestAVolumeInCephHasANewOwnerOnlyWhenAllClientsOfTheOldOneAreFenced(t *testing.T) {
	v := fencing(2)
	if ownership, decision := next(t, v, start); ownership != shut || !decision.NoOwner {
		t.Fatalf("before the fence: %+v", ownership)
	}
	recorded(v, ref(1), 2, fenced, model.RadosClient{Client: "another"})
	if ownership, _ := next(t, v, start); ownership != shut {
		t.Fatalf("one of two is fenced: %+v", ownership)
	}
	recorded(v, ref(1), 3, fenced, model.RadosClient{Client: "another", Fenced: true})
	ownership, decision := next(t, v, start)
	if ownership.State != model.Opening || ownership.Owner != ref(2) || ownership.Epoch != 5 || ownership.FencedClients != "c1 another" {
		t.Fatalf("all are fenced: %+v", ownership)
	}
	records := as[*decide.ChangeOwner](decision.Actions[0]).Records
	if len(records) != 2 || records[0].Version != 3 || records[1].Gateway != ref(2) {
		t.Errorf("it is stored whatever has become of the records: %+v", records)
	}
}

func TestAGatewayIsShutOutOfAPoolOnceForAllItsVolumes(t *testing.T) {
	v := fencing(3)
	v.Put(&model.Volume{Meta: model.Meta{Name: "w", UID: "x", Version: 1}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1},
		Status: model.VolumeStatus{CapacityBytes: 1, Ownership: shut}})
	given := job(v, start)
	if given == nil || !slices.Equal(given.Clients, []string{"c1"}) || given.PoolUID != "p" ||
		given.ExpireSeconds < 365*86400 {
		t.Fatalf("%+v", given)
	}
	given.Version, given.Attempt = 9, 1
	v.PutJob(given)
	if again := job(v, start); again != nil {
		t.Fatalf("asked twice: %+v", again)
	}
	done := *given
	done.Version, done.Result = 10, model.JobResult{DonePermille: model.JobDone, At: start}
	v.PutJob(&done)
	decision := v.DecidePool("pool", start)
	if a := as[*decide.FenceClients](decision.Actions[0]); a == nil || a.Record.Version != 1 || !slices.Equal(a.Clients, []string{"c1"}) {
		t.Fatalf("the completed job is not recorded: %+v", decision.Actions)
	}
	if droppedBy(decision.Actions[1]) == nil {
		t.Error("a job that is done stays")
	}
}

// A gateway that must be fenced may hang and not carry out the job. If it is the only gateway, its new process can do so.
func TestAGatewayIsAskedToFenceItselfOnlyIfNoOtherGatewayCan(t *testing.T) {
	for gateways, want := range map[int]uint32{1: 1, 2: 2} {
		v := known(gateways)
		exported(v, shut, true)
		if given := job(v, start); given == nil || given.Gateway != want {
			t.Errorf("%d gateways: %+v", gateways, given)
		}
	}
}

func TestAFailedFenceIsReportedAndRetriedByAnotherGateway(t *testing.T) {
	v := fencing(3)
	given := job(v, start)
	given.Version, given.Attempt, given.Gateway = 9, 1, 2
	given.Result = model.JobResult{Problem: "no monitor answered", At: start}
	v.PutJob(given)
	if again := job(v, start); again != nil {
		t.Fatalf("at once: %+v", again)
	}
	if again := job(v, start.Add(decide.MinRetry)); again == nil || again.Gateway != 3 {
		t.Fatalf("later: %+v", again)
	}
	explained := false
	for _, a := range v.DecideVolume("v", start).Actions {
		volume := *v.Volumes["v"]
		if modifies(a, &volume) {
			explained = explained || strings.Contains(volume.Status.Conditions[0].Message, "gateway gw-2 failed to: no monitor answered")
		}
	}
	if !explained {
		t.Error("no reason is reported")
	}
}

// R2: a client that is not recorded cannot be fenced, so no gateway takes over.
func TestNoTakeoverFromAGatewayWithUnknownClients(t *testing.T) {
	v := fencing(2)
	v.ResetRadosClients()
	recorded(v, ref(2), 1, model.RadosClient{Client: "c2"})
	if ownership, decision := next(t, v, start.Add(time.Hour)); ownership != shut || !decision.NoOwner {
		t.Errorf("%+v", ownership)
	}
	if given := job(v, start); given != nil {
		t.Errorf("%+v", given)
	}
}

func TestTheOwnersReportThatItReleasedTheVolumeEndsAFence(t *testing.T) {
	for name, c := range map[string]struct {
		by    model.GatewayRef
		state model.ObservedState
		epoch uint64
		want  model.OwnershipState
	}{
		"released in the epoch before":     {ref(1), model.VolumeReleased, 3, model.Opening},
		"fenced in the epoch before":       {ref(1), model.VolumeFenced, 3, model.Opening},
		"released in an older one":         {ref(1), model.VolumeReleased, 2, model.Fencing},
		"serves in it":                     {ref(1), model.VolumeServing, 3, model.Fencing},
		"another incarnation has released": {model.GatewayRef{Number: 1, Incarnation: "j"}, model.VolumeReleased, 3, model.Fencing},
	} {
		t.Run(name, func(t *testing.T) {
			v := fencing(2)
			observed(v, c.by, c.state, c.epoch, 8)
			if ownership, _ := next(t, v, start); ownership.State != c.want {
				t.Errorf("%+v", ownership)
			}
		})
	}
}

// The next owner ignores the locks of clients that are reported as fenced, so a living client must not be among them.
func TestAfterAnOwnerReleasedOnlyFencedClientsAreReportedAsFenced(t *testing.T) {
	v := fencing(2)
	recorded(v, ref(1), 2, fenced, model.RadosClient{Client: "lives"})
	observed(v, ref(1), model.VolumeReleased, 3, 8)
	if ownership, _ := next(t, v, start); ownership.State != model.Opening || ownership.FencedClients != "c1" {
		t.Errorf("%+v", ownership)
	}
}

func TestADeletedVolumeDoesNotWaitForAGatewayWhoseClientsAreUnknown(t *testing.T) {
	v := fencing(2)
	v.ResetRadosClients()
	volume, deleted := *v.Volumes["v"], start
	volume.Meta.Version, volume.Meta.DeleteTime = volume.Meta.Version+1, &deleted
	v.Put(&volume)
	ownership, decision := next(t, v, start)
	if ownership.State != model.Orphaned {
		t.Fatalf("%+v", ownership)
	}
	if records := as[*decide.ChangeOwner](decision.Actions[0]).Records; len(records) != 1 || records[0].Version != 0 || records[0].Gateway != ref(1) {
		t.Errorf("it is stored though a record came meanwhile: %+v", records)
	}
	recorded(v, ref(1), 2, unfenced)
	if ownership, _ := next(t, v, start); ownership != shut {
		t.Errorf("one that is known is fenced first: %+v", ownership)
	}
}

func TestOnlyAGatewayThatCouldBeShutOutIsGivenAVolumeInCeph(t *testing.T) {
	for name, c := range map[string]struct {
		clients []model.RadosClient
		want    model.OwnershipState
	}{
		"one whose client is recorded":             {[]model.RadosClient{unfenced}, model.Opening},
		"none whose only client is fenced":         {[]model.RadosClient{fenced}, model.Unowned},
		"one that has come back as another client": {[]model.RadosClient{fenced, {Client: "new"}}, model.Opening},
		"none of which nothing is recorded":        {nil, model.Unowned},
	} {
		t.Run(name, func(t *testing.T) {
			v := known(1)
			exported(v, model.Ownership{State: model.Unowned}, true)
			recorded(v, ref(1), 2, c.clients...)
			if ownership, _ := next(t, v, start); ownership.State != c.want {
				t.Errorf("%+v", ownership)
			}
		})
	}
}

func TestAnOwnerInCephThatDoesNotReleaseTheVolumeInTimeIsFenced(t *testing.T) {
	v := known(2)
	exported(v, model.Ownership{State: model.Moving, Epoch: 3, Owner: ref(1), Next: ref(2), Order: 7, Since: start}, true)
	if ownership, _ := next(t, v, start.Add(decide.MoveTimeout-time.Second)); ownership.State != model.Moving {
		t.Errorf("too soon: %+v", ownership)
	}
	if ownership, _ := next(t, v, start.Add(decide.MoveTimeout)); ownership.State != model.Fencing || ownership.Fence != ref(1) {
		t.Errorf("%+v", ownership)
	}
}

// The record of the next owner may be dropped meanwhile, and then that gateway could not be fenced.
func TestAVolumeInCephIsGivenOnlyToWhomIsRecordedStillWhenThatIsStored(t *testing.T) {
	for name, ownership := range map[string]model.Ownership{
		"unowned": {State: model.Unowned, Epoch: 3, Order: 7},
		"a move":  {State: model.Owned, Epoch: 3, Order: 7, Owner: ref(1), Since: start},
	} {
		v := known(2)
		exported(v, ownership, true)
		if ownership.State == model.Owned {
			volume := *v.Volumes["v"]
			volume.Meta.Version++
			volume.Status.MoveRequest = &model.MoveRequest{Gateway: 2, Since: start}
			v.Put(&volume)
		}
		_, decision := next(t, v, start)
		records := as[*decide.ChangeOwner](decision.Actions[0]).Records
		if len(records) != 1 || records[0].Version == 0 || name == "a move" && records[0].Gateway != ref(2) {
			t.Errorf("%s: %+v", name, records)
		}
	}
}

func TestNoGatewayGetsAVolumeInCephWhileItsRecordIsBeingRemoved(t *testing.T) {
	v := known(1)
	exported(v, model.Ownership{State: model.Unowned}, true)
	v.PutRadosClients(&model.RadosClients{PoolUID: "p", Gateway: ref(1), Leaving: true, Version: 2,
		Clients: []model.RadosClient{unfenced}})
	if ownership, _ := next(t, v, start); ownership.State != model.Unowned {
		t.Errorf("%+v", ownership)
	}
}

func TestARecordOfClientsIsForgottenOnceItsGatewayIsGoneAndNothingWaitsForIt(t *testing.T) {
	drops := func(v *decide.LeaderView) bool {
		return slices.ContainsFunc(v.DecidePool("pool", start).Actions, func(a decide.Action) bool {
			return as[*decide.DropClients](a) != nil && as[*decide.DropClients](a).Record.Gateway == ref(1)
		})
	}
	v := fencing(2)
	recorded(v, ref(1), 2, fenced)
	connected(v, 1, "j")
	if drops(v) {
		t.Error("a volume waits for it")
	}
	stored(v, model.Ownership{State: model.Owned, Epoch: 5, Owner: ref(2), Order: 10}, 2)
	if !drops(v) {
		t.Error("nothing waits for it")
	}
	v = known(2)
	exported(v, model.Ownership{State: model.Owned, Epoch: 5, Owner: ref(2), Order: 10}, true)
	if drops(v) {
		t.Error("its gateway is there")
	}
}

func TestAFenceWhoseRecordIsGoneIsForgotten(t *testing.T) {
	v := fencing(2)
	given := job(v, start)
	given.Version = 9
	v.PutJob(given)
	drops := func() bool {
		return slices.ContainsFunc(v.DecidePool("pool", start).Actions, func(a decide.Action) bool {
			return droppedBy(a) != nil && droppedBy(a).ID == given.ID
		})
	}
	if drops() {
		t.Error("it has yet to be done")
	}
	v.ResetRadosClients()
	if !drops() {
		t.Error("it stays without end")
	}
}

// Ceph does not remove an image with which a clone shares blocks, so the clone must be adopted and flattened.
func TestACloneIsAdoptedWhileItsSourceIsBeingDeleted(t *testing.T) {
	v := known(1)
	exported(v, model.Ownership{State: model.Unowned}, true)
	v.Put(&model.Volume{Meta: model.Meta{Name: "w", UID: "x", Version: 1}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1,
		Source: model.VolumeSource{Volume: "v"}}, Status: model.VolumeStatus{Ownership: model.Ownership{State: model.Unowned}}})
	v.PutJob(&model.Job{ID: "u.delete", Action: model.JobDeleteImage, Gateway: 1, Version: 2})
	v.PutJob(&model.Job{ID: "x.create", Action: model.JobCloneImage, Gateway: 1, Version: 3, SizeBytes: 1,
		Result: model.JobResult{DonePermille: model.JobDone, At: start}})
	made := *v.Volumes["w"]
	for _, a := range v.DecideVolume("w", start).Actions {
		modifies(a, &made)
	}
	if made.Status.CapacityBytes != 1 || made.Status.SharesWith != "u" {
		t.Errorf("%+v", made.Status)
	}
}

func TestImagesWithoutAVolumeAreReported(t *testing.T) {
	v := known(1)
	exported(v, model.Ownership{State: model.Unowned}, true)
	v.Observe(model.Observed{Version: term + 1, Pool: &model.PoolReport{UID: "p", Gateway: ref(1), CapacityBytes: 1 << 30}}, start)
	listImages(t, v, start, "volume-u", "volume-gone")
	pool := listImages(t, v, start.Add(decide.ConfirmImagesAfter), "volume-u", "volume-gone")
	if s := pool.Status; s.OrphanedImageCount != 1 || !slices.Equal(s.OrphanedImages, []string{"volume-gone"}) {
		t.Errorf("%+v", s)
	}
}
