package decide_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// inDirectory returns a view with a pool in a directory of node-1, a volume that has an image there, and one that has none yet.
func inDirectory() *decide.LeaderView {
	v := known(1)
	v.Put(&model.StoragePool{Meta: model.Meta{Name: "pool", UID: "p", Version: 1}, Spec: model.StoragePoolSpec{WarnPercent: 85,
		Local: &model.LocalPool{Node: "node-1", Directory: "/srv/sluice"}}})
	for name, capacity := range map[string]int64{"made": 1 << 20, "new": 0} {
		v.Put(&model.Volume{Meta: model.Meta{Name: name, UID: name, Version: 1}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20},
			Status: model.VolumeStatus{CapacityBytes: capacity, Ownership: model.Ownership{State: model.Unowned}}})
	}
	return v
}

func reportPool(v *decide.LeaderView, r model.PoolReport) {
	r.UID, r.Gateway = "p", ref(1)
	v.Observe(model.Observed{Version: term + 1, Pool: &r}, start)
}

// decidedPool applies the decision on the pool.
func decidedPool(v *decide.LeaderView, now time.Time) *model.StoragePool {
	pool := *v.StoragePools["pool"]
	for _, a := range v.DecidePool("pool", now).Actions {
		modifies(a, &pool)
	}
	pool.Meta.Version++
	v.Put(&pool)
	return &pool
}

// decidedVolume applies the decision on the volume, without assigning its jobs.
func decidedVolume(v *decide.LeaderView, name string) (*model.Volume, []*model.Job) {
	volume, decision := *v.Volumes[name], v.DecideVolume(name, start)
	for _, a := range decision.Actions {
		modifies(a, &volume)
	}
	return &volume, jobsOf(decision)
}

func TestInAPoolThatIsNotIdentifiedNothingIsCreatedOrDeletedAndNothingIsReady(t *testing.T) {
	v := inDirectory()
	deleted := *v.Volumes["made"]
	deleted.Meta.Name, deleted.Meta.UID, deleted.Meta.DeleteTime = "deleted", "deleted", &start
	v.Put(&deleted)
	reportPool(v, model.PoolReport{Unidentified: true, Problem: "/srv/sluice has no marker: mount it"})
	ready := conditionOf(t, decidedPool(v, start).Status.Conditions, model.ConditionReady)
	if ready.Status != model.ConditionFalse || ready.Reason != "PoolNotIdentified" || !strings.Contains(ready.Message, "mount it") {
		t.Errorf("%+v", ready)
	}
	for _, name := range []string{"made", "new", "deleted"} {
		volume, jobs := decidedVolume(v, name)
		if c := conditionOf(t, volume.Status.Conditions, model.ConditionReady); c.Status != model.ConditionFalse || c.Reason != "PoolNotIdentified" {
			t.Errorf("%s: %+v", name, c)
		}
		if len(jobs) > 0 {
			t.Errorf("%s: %+v", name, jobs)
		}
	}
	reportPool(v, model.PoolReport{CapacityBytes: 1 << 30, Marker: "m"})
	if pool := decidedPool(v, start); pool.Status.Marker != "m" ||
		conditionOf(t, pool.Status.Conditions, model.ConditionReady).Status != model.ConditionTrue {
		t.Errorf("%+v", pool.Status)
	}
	for _, name := range []string{"new", "deleted"} {
		if _, jobs := decidedVolume(v, name); len(jobs) != 1 {
			t.Errorf("%s: %+v", name, jobs)
		}
	}
}

func TestAnotherMarkerIsAdoptedAfterAConfirmedReplacement(t *testing.T) {
	v := inDirectory()
	marker := func(id string, adoptions uint32) string {
		reportPool(v, model.PoolReport{CapacityBytes: 1 << 30, Marker: id, Adoptions: adoptions})
		return decidedPool(v, start).Status.Marker
	}
	if got := marker("first", 0); got != "first" {
		t.Error(got)
	}
	if got := marker("other", 0); got != "first" {
		t.Error("no gateway has confirmed it: ", got)
	}
	if got := marker("other", 1); got != "first" {
		t.Error("no gateway has confirmed it: ", got)
	}
	confirmed := *v.StoragePools["pool"]
	confirmed.Spec.Adoptions, confirmed.Meta.Version = 1, confirmed.Meta.Version+1
	v.Put(&confirmed)
	if got := marker("other", 1); got != "other" {
		t.Error(got)
	}
	if got := marker("first", 0); got != "other" {
		t.Error("an old report undoes it: ", got)
	}
}

func TestImagesWithoutVolumesAndVolumesWithoutImagesInADirectoryAreListed(t *testing.T) {
	v := inDirectory()
	reportPool(v, model.PoolReport{CapacityBytes: 1 << 30})
	if jobs := jobsOf(v.DecidePool("pool", start)); len(jobs) != 0 {
		t.Errorf("a gateway that lists no images is asked for them: %+v", jobs)
	}
	reportPool(v, model.PoolReport{CapacityBytes: 1 << 30, ListsImages: true})
	list := func(now time.Time, images ...string) *model.StoragePool { return listImages(t, v, now, images...) }
	pool := list(start, "volume-left")
	if s := pool.Status; len(s.OrphanedImages) != 0 || len(s.MissingImages) != 0 || degradedOf(s.Conditions).Status == model.ConditionTrue {
		t.Errorf("a volume may have been created or deleted since the list: %+v", s)
	}
	now := start.Add(decide.ConfirmImagesAfter)
	pool = list(now, "volume-left")
	if s := pool.Status; !slices.Equal(s.OrphanedImages, []string{"volume-left"}) || !slices.Equal(s.MissingImages, []string{"volume-made"}) {
		t.Errorf("%+v", s)
	}
	if c := degradedOf(pool.Status.Conditions); c.Reason != "ImageMissing" || !strings.Contains(c.Message, "volume-made") {
		t.Errorf("%+v", c)
	}
	volume, _ := decidedVolume(v, "made")
	if c := conditionOf(t, volume.Status.Conditions, model.ConditionReady); c.Status != model.ConditionFalse || c.Reason != "ImageMissing" {
		t.Errorf("%+v", c)
	}
	pool = list(now.Add(decide.ListMissingEvery), "volume-made")
	if s := pool.Status; s.OrphanedImageCount != 0 || len(s.MissingImages) != 0 {
		t.Errorf("%+v", s)
	}
	volume, _ = decidedVolume(v, "made")
	if c := conditionOf(t, volume.Status.Conditions, model.ConditionReady); c.Status != model.ConditionTrue {
		t.Errorf("%+v", c)
	}
}

// listImages lets a gateway list the images of `pool`, and returns the pool after the decision. The job is dropped.
func listImages(t *testing.T, v *decide.LeaderView, now time.Time, images ...string) *model.StoragePool {
	t.Helper()
	jobs := jobsOf(v.DecidePool("pool", now))
	if len(jobs) != 1 || jobs[0].Action != model.JobListImages {
		t.Fatalf("%+v", jobs)
	}
	jobs[0].Version, jobs[0].Result = 9, model.JobResult{DonePermille: model.JobDone, At: now, Images: images}
	v.PutJob(jobs[0])
	decidedPool(v, now)
	v.DeleteJob(jobs[0].ID, 10)
	return decidedPool(v, now)
}

// An image that is created or deleted while a gateway lists the images is unmatched in one list only.
func TestAnImageThatOneListDoesNotMatchIsNeitherMissingNorOrphaned(t *testing.T) {
	v := inDirectory()
	reportPool(v, model.PoolReport{CapacityBytes: 1 << 30, ListsImages: true})
	listImages(t, v, start, "volume-deleted")
	pool := listImages(t, v, start.Add(decide.ConfirmImagesAfter), "volume-made")
	if s := pool.Status; len(s.OrphanedImages) != 0 || len(s.MissingImages) != 0 || len(s.UnconfirmedImages) != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAListOfImagesDoesNotConfirmItselfIfItsJobIsNotRemoved(t *testing.T) {
	v := inDirectory()
	reportPool(v, model.PoolReport{CapacityBytes: 1 << 30, ListsImages: true})
	jobs := jobsOf(v.DecidePool("pool", start))
	if len(jobs) != 1 {
		t.Fatalf("%+v", jobs)
	}
	jobs[0].Version, jobs[0].Result = 9, model.JobResult{DonePermille: model.JobDone, At: start}
	v.PutJob(jobs[0])
	for range 2 {
		if s := decidedPool(v, start).Status; len(s.MissingImages) != 0 || !slices.Equal(s.UnconfirmedImages, []string{"volume-made"}) {
			t.Errorf("%+v", s)
		}
	}
}

// afterListing returns a pool after a gateway listed its images twice, and the messages of the events. The pool should have volume-made.
func afterListing(t *testing.T, spec model.StoragePoolSpec, images ...string) (model.StoragePoolStatus, string) {
	t.Helper()
	v := inDirectory()
	pool := *v.StoragePools["pool"]
	pool.Spec = spec
	pool.Meta.Version++
	v.Put(&pool)
	v.PutRadosClients(&model.RadosClients{PoolUID: "p", Gateway: ref(1), Clients: []model.RadosClient{{Client: "c"}}, Version: 1})
	reportPool(v, model.PoolReport{CapacityBytes: 1 << 30, ListsImages: true})
	listImages(t, v, start, images...)
	now := start.Add(decide.ConfirmImagesAfter)
	jobs := jobsOf(v.DecidePool("pool", now))
	if len(jobs) != 1 {
		t.Fatalf("%+v", jobs)
	}
	jobs[0].Version, jobs[0].Result = 19, model.JobResult{DonePermille: model.JobDone, At: now, Images: images}
	v.PutJob(jobs[0])
	pool = *v.StoragePools["pool"]
	messages := ""
	for _, a := range v.DecidePool("pool", now).Actions {
		if change, ok := a.(*decide.Modify); ok && change.Event != nil {
			messages += change.Event.Message
		}
		modifies(a, &pool)
	}
	return pool.Status, messages
}

func TestImagesWithoutVolumesAndVolumesWithoutImagesAreListedForEveryKindOfPool(t *testing.T) {
	for name, c := range map[string]struct {
		spec   model.StoragePoolSpec
		remedy string
	}{
		"directory": {model.StoragePoolSpec{WarnPercent: 85, Local: &model.LocalPool{Node: "node-1", Directory: "/srv/sluice"}},
			"remove them from /srv/sluice"},
		"devices": {model.StoragePoolSpec{WarnPercent: 85, Local: &model.LocalPool{Node: "node-1", Devices: []string{"/dev/disk/by-id/a"}}},
			"blkdiscard"},
		"Ceph": {model.StoragePoolSpec{WarnPercent: 85, RBD: &model.RBDPool{Pool: "rbd"}}, "adopt or remove them"},
	} {
		t.Run(name, func(t *testing.T) {
			status, messages := afterListing(t, c.spec)
			if !slices.Equal(status.MissingImages, []string{"volume-made"}) || !strings.Contains(messages, "restore them, or delete the volumes") {
				t.Errorf("of a missing image: %v, %q", status.MissingImages, messages)
			}
			status, messages = afterListing(t, c.spec, "volume-left", "volume-made")
			if !slices.Equal(status.OrphanedImages, []string{"volume-left"}) || !strings.Contains(messages, c.remedy) {
				t.Errorf("of an image without a volume: %v, %q", status.OrphanedImages, messages)
			}
		})
	}
}

func TestAVolumeThatGatewaysCouldNotOpenSaysWhy(t *testing.T) {
	v := inDirectory()
	reportPool(v, model.PoolReport{CapacityBytes: 1 << 30})
	v.Observe(model.Observed{Version: term + 1, Volume: &model.VolumeReport{UID: "made", Gateway: ref(1),
		VolumeObservation: model.VolumeObservation{State: model.VolumeFailed, Reason: "the image is 1 MiB, recorded are 8 MiB"}}}, start)
	volume, _ := decidedVolume(v, "made")
	c := conditionOf(t, volume.Status.Conditions, model.ConditionReady)
	if c.Status != model.ConditionFalse || c.Reason != "OpenFailed" ||
		!strings.Contains(c.Message, "gateway gw-1 could not open it: the image is 1 MiB") {
		t.Errorf("%+v", c)
	}
}
