package decide_test

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// The result of a job may be stored without the job being dropped. The next request must neither count as done nor wait without
// end.
func TestAVolumeGrowsAgainThoughTheJobThatGrewItBeforeIsStillThere(t *testing.T) {
	v := onDevices()
	volume := *v.Volumes["v"]
	volume.Meta.Version, volume.Spec.SizeBytes, volume.Status.CapacityBytes = 2, 3<<20, 2<<20
	v.Put(&volume)
	old := &model.Job{ID: "u.resize", Action: model.JobResizeImage, Gateway: 1, Version: 3, SizeBytes: 2 << 20,
		Result: model.JobResult{DonePermille: model.JobDone, At: start}}
	v.PutJob(old)
	for _, a := range v.DecideVolume("v", start).Actions { // each is executed only if the previous one was
		if droppedBy(a) == old {
			v.DeleteJob(old.ID, 4)
			break
		}
		if same := volume; as[*decide.Modify](a) != nil && !modifies(a, &same) {
			t.Fatal("an action without effect comes before the removal of the job")
		}
	}
	if jobs := jobsOf(v.DecideVolume("v", start)); len(jobs) != 1 || jobs[0].SizeBytes != 3<<20 {
		t.Errorf("%+v", jobs)
	}
}

func TestTheJobOfARollbackIsDroppedBeforeTheRequestEnds(t *testing.T) {
	v := copyInCeph(func(volume *model.Volume) {
		volume.Meta.DeleteTime, volume.Status.RollBack = nil, &model.RollBackRequest{Snapshot: "s", Since: start}
	})
	v.Put(&model.Snapshot{Meta: model.Meta{Name: "monday", UID: "s", Version: 1}, Spec: model.SnapshotSpec{Volume: "v"}})
	v.PutJob(&model.Job{ID: "u.rollback", Action: model.JobRollBackImage, Version: 3,
		Result: model.JobResult{DonePermille: model.JobDone, At: start}})
	actions := v.DecideVolume("v", start).Actions
	if len(actions) < 2 || droppedBy(actions[0]) == nil || actions[1].About().Event == nil || actions[1].About().Event.Reason != "RolledBack" {
		t.Errorf("left over, it would be taken for the next request's: %+v", actions)
	}
}

// Each action may be the last one that is stored. In none of the states in between does the rollback look successful, and the
// next request finds no remains of this one.
func TestAFailedRollbackIsReportedWhenItEnds(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot bool
		job      *model.Job
		why      string
	}{
		"the pool can't": {true, &model.Job{ID: "u.rollback", Action: model.JobRollBackImage, Version: 3,
			Result: model.JobResult{Problem: "no such thing here", Unsupported: true, At: start}}, "no such thing here"},
		"the snapshot is gone": {false, nil, "the snapshot is not there any more"},
	} {
		t.Run(name, func(t *testing.T) {
			v := copyInCeph(func(volume *model.Volume) {
				volume.Meta.DeleteTime, volume.Status.RollBack = nil, &model.RollBackRequest{Snapshot: "s", Since: start}
				volume.Status.SharesWith = ""
			})
			if c.snapshot {
				v.Put(&model.Snapshot{Meta: model.Meta{Name: "monday", UID: "s", Version: 1}, Spec: model.SnapshotSpec{Volume: "v"}})
			}
			if c.job != nil {
				v.PutJob(c.job)
			}
			volume, dropped := *v.Volumes["v"], false
			for _, a := range v.DecideVolume("v", start).Actions {
				dropped = dropped || droppedBy(a) != nil
				if as[*decide.Modify](a) != nil && !modifies(a, &volume) {
					t.Fatal("an action that changes nothing ends the decision")
				}
				if volume.Status.RollBack != nil {
					continue
				}
				condition := conditionOf(t, volume.Status.Conditions, model.ConditionProgressing)
				if condition.Reason != "RollBackFailed" || condition.Message != c.why || condition.Status != model.ConditionFalse {
					t.Fatalf("it is over, and the condition is %+v", condition)
				}
			}
			if volume.Status.RollBack != nil || dropped != (c.job != nil) {
				t.Fatalf("the request is %v, the job was dropped: %v", volume.Status.RollBack, dropped)
			}
		})
	}
}

// copyInCeph returns a view with a volume in Ceph that was made from another one and is deleted.
func copyInCeph(change func(*model.Volume)) *decide.LeaderView {
	v := known(1)
	v.Put(&model.StoragePool{Meta: model.Meta{Name: "pool", UID: "p", Version: 1}, Spec: model.StoragePoolSpec{WarnPercent: 85,
		RBD: &model.RBDPool{Pool: "rbd"}}})
	v.PutRadosClients(&model.RadosClients{PoolUID: "p", Gateway: ref(1), Clients: []model.RadosClient{{Client: "c"}}, Version: 1})
	deleted := start
	volume := &model.Volume{Meta: model.Meta{Name: "v", UID: "u", Version: 1, DeleteTime: &deleted},
		Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20, Source: model.VolumeSource{Volume: "origin"}},
		Status: model.VolumeStatus{CapacityBytes: 1 << 20, Ownership: model.Ownership{State: model.Unowned},
			SharesWith: "o"}}
	change(volume)
	v.Put(volume)
	return v
}

func TestARetainedCopyIsFlattenedBeforeItsDeletion(t *testing.T) {
	for _, policy := range []model.ReclaimPolicy{model.ReclaimRetain, model.ReclaimTrash} {
		v := copyInCeph(func(volume *model.Volume) { volume.Spec.ReclaimPolicy = policy })
		decision := v.DecideVolume("v", start)
		if jobs := jobsOf(decision); len(jobs) != 1 || jobs[0].Action != model.JobFlattenImage {
			t.Errorf("%s: %+v", policy, jobs)
		}
		for _, a := range decision.Actions {
			if as[*decide.Remove](a) != nil {
				t.Errorf("%s: it goes while the other one can't be deleted", policy)
			}
		}
	}
	v := copyInCeph(func(volume *model.Volume) { volume.Spec.ReclaimPolicy = model.ReclaimDelete })
	if jobs := jobsOf(v.DecideVolume("v", start)); len(jobs) != 1 || jobs[0].Action != model.JobDeleteImage || jobs[0].VolumeUID != "u" {
		t.Errorf("a clone that is deleted anyway is flattened: %+v", jobs)
	}
}

func TestTheImageOfAVolumeThatNeverBecameReadyIsDeletedUnlessItWasAdopted(t *testing.T) {
	for _, policy := range []model.ReclaimPolicy{model.ReclaimRetain, model.ReclaimTrash} {
		for image, kept := range map[string]bool{"": false, "image-1": true} {
			v := copyInCeph(func(volume *model.Volume) {
				volume.Spec.ReclaimPolicy, volume.Spec.Source = policy, model.VolumeSource{Image: image}
				volume.Status.CapacityBytes, volume.Status.SharesWith = 0, ""
			})
			v.PutJob(&model.Job{ID: "u.delete", Action: model.JobDeleteImage, Version: 2, Result: model.JobResult{At: start}})
			jobs := jobsOf(v.DecideVolume("v", start))
			removed := len(jobs) == 1 && jobs[0].Action == model.JobDeleteImage && jobs[0].TrashSeconds == 0
			if removed == kept {
				t.Errorf("%s, from image %q: %+v", policy, image, jobs)
			}
		}
	}
}

// The gateway renames an image before the leader knows that it is too large. A user who deletes the volume to start again has not
// requested that older data is deleted.
func TestAnImageThatCouldNotBeAdoptedOutlivesItsVolume(t *testing.T) {
	for name, c := range map[string]struct {
		result model.JobResult
		words  []string
	}{
		"it is larger": {model.JobResult{DonePermille: model.JobDone, SizeBytes: 2 << 20, At: start},
			[]string{"legacy is kept, as volume-u", "--from-image volume-u --size 2097152"}},
		"it could be used, and was not yet": {model.JobResult{DonePermille: model.JobDone, SizeBytes: 1 << 20, At: start},
			[]string{"legacy is kept, as volume-u", "--from-image volume-u --size 1048576"}},
		"it is in use":       {model.JobResult{Problem: "in use", At: start}, []string{"legacy is kept, under its name or as volume-u"}},
		"a gateway is at it": {model.JobResult{}, []string{"legacy is kept, under its name or as volume-u"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := copyInCeph(func(volume *model.Volume) {
				volume.Spec.ReclaimPolicy, volume.Spec.Source = model.ReclaimDelete, model.VolumeSource{Image: "legacy"}
				volume.Status.CapacityBytes, volume.Status.SharesWith = 0, ""
			})
			job := &model.Job{ID: "u.create", Action: model.JobAdoptImage, Gateway: 1, Image: "legacy", Version: 2, Result: c.result}
			v.PutJob(job)
			decision := v.DecideVolume("v", start)
			if jobs := jobsOf(decision); len(jobs) != 0 {
				t.Fatalf("its image goes: %+v", jobs)
			}
			if len(decision.Actions) != 2 || droppedBy(decision.Actions[0]) != job || as[*decide.Remove](decision.Actions[1]) == nil {
				t.Fatalf("%+v", decision.Actions)
			}
			event := decision.Actions[0].About().Event
			if event == nil || event.Reason != "ImageKept" {
				t.Fatalf("its location is not reported: %+v", event)
			}
			for _, words := range c.words {
				if !strings.Contains(event.Message, words) {
					t.Errorf("%q is not in %q", words, event.Message)
				}
			}
		})
	}
	adopted := copyInCeph(func(volume *model.Volume) {
		volume.Spec.ReclaimPolicy, volume.Spec.Source = model.ReclaimDelete, model.VolumeSource{Image: "legacy"}
		volume.Status.SharesWith = ""
	})
	if jobs := jobsOf(adopted.DecideVolume("v", start)); len(jobs) != 1 || jobs[0].Action != model.JobDeleteImage {
		t.Errorf("the image of a volume that was usable stays, against the request: %+v", jobs)
	}
}

// These operations were pending when the store was restored.
func TestHeldOperationsAreNotCarriedOutBeforeTheyAreConfirmed(t *testing.T) {
	for name, change := range map[string]func(*model.Volume){
		"a deletion": func(*model.Volume) {},
		"a rollback": func(v *model.Volume) {
			v.Meta.DeleteTime, v.Status.RollBack = nil, &model.RollBackRequest{Snapshot: "s"}
		},
		"a resize": func(v *model.Volume) { v.Meta.DeleteTime, v.Spec.SizeBytes = nil, v.Spec.SizeBytes*2 },
		"a copy": func(v *model.Volume) {
			v.Meta.DeleteTime, v.Spec.Source, v.Status.CapacityBytes = nil, model.VolumeSource{Snapshot: "s"}, 0
		},
	} {
		v := copyInCeph(func(volume *model.Volume) { change(volume); volume.Hold(start, nil) })
		decision := v.DecideVolume("v", start)
		if jobs := jobsOf(decision); len(jobs) > 0 {
			t.Errorf("%s is carried out: %+v", name, jobs)
		}
		shown := false
		for _, a := range decision.Actions {
			if as[*decide.Remove](a) != nil {
				t.Errorf("%s: the volume is removed", name)
			}
			volume := *v.Volumes["v"]
			if modifies(a, &volume) {
				shown = slices.ContainsFunc(volume.Status.Conditions, func(c model.Condition) bool { return c.Reason == model.HeldReason })
			}
		}
		if !shown {
			t.Errorf("%s: no condition names %s", name, model.HeldReason)
		}
	}
	v := copyInCeph(func(volume *model.Volume) { volume.Spec.ReclaimPolicy = model.ReclaimDelete })
	if jobs := jobsOf(v.DecideVolume("v", start)); len(jobs) != 1 || jobs[0].Action != model.JobDeleteImage {
		t.Errorf("without a hold: %+v", jobs)
	}
}
