package decide_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// onDevices returns a view with a pool of devices on node-1, and a volume in it that has no image yet.
func onDevices() *decide.LeaderView {
	v := known(1)
	v.Put(&model.StoragePool{Meta: model.Meta{Name: "pool", UID: "p", Version: 1}, Spec: model.StoragePoolSpec{WarnPercent: 85,
		Local: &model.LocalPool{Node: "node-1", Devices: []string{"/dev/a", "/dev/b"}}}})
	v.Put(&model.Volume{Meta: model.Meta{Name: "v", UID: "u", Version: 1},
		Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 1 << 20}, Status: model.VolumeStatus{Ownership: model.Ownership{State: model.Unowned}}})
	return v
}

func jobsOf(decision decide.Decision) []*model.Job {
	var jobs []*model.Job
	for _, a := range decision.Actions {
		if jobOf(a) != nil {
			jobs = append(jobs, jobOf(a))
		}
	}
	return jobs
}

func TestAVolumeOnADeviceIsMadeByAGatewayOfTheNode(t *testing.T) {
	v := onDevices()
	jobs := jobsOf(v.DecideVolume("v", start))
	if len(jobs) != 1 || jobs[0].Action != model.JobCreateImage || jobs[0].Location != "volume-u" || jobs[0].SizeBytes != 1<<20 {
		t.Fatalf("%+v", jobs)
	}
	jobs[0].Version, jobs[0].Result = 9, model.JobResult{DonePermille: model.JobDone, At: start}
	v.PutJob(jobs[0])
	made := *v.Volumes["v"]
	for _, a := range v.DecideVolume("v", start).Actions {
		modifies(a, &made)
	}
	if made.Status.CapacityBytes != 1<<20 {
		t.Errorf("%+v", made.Status)
	}
}

func degradedOf(conditions []model.Condition) model.Condition {
	for _, c := range conditions {
		if c.Type == model.ConditionDegraded {
			return c
		}
	}
	return model.Condition{}
}

func TestARemovedDeviceOfAVolumeIsReportedAtPoolAndVolume(t *testing.T) {
	v := onDevices()
	report := func(number uint32, takenOut map[string]string) {
		v.Observe(model.Observed{Version: term + 1, Pool: &model.PoolReport{UID: "p", Gateway: ref(number), CapacityBytes: 1 << 30,
			TakenOut: takenOut}}, start)
	}
	made := *v.Volumes["v"]
	made.Status.CapacityBytes = made.Spec.SizeBytes
	v.Put(&made)
	look := func() (*model.StoragePool, *model.Volume) {
		pool, volume := *v.StoragePools["pool"], *v.Volumes["v"]
		for _, a := range v.DecidePool("pool", start).Actions {
			modifies(a, &pool)
		}
		for _, a := range v.DecideVolume("v", start).Actions {
			modifies(a, &volume)
		}
		return &pool, &volume
	}
	report(1, map[string]string{"volume-u": "/dev/b", "volume-retained": "/dev/c"})
	pool, volume := look()
	for _, c := range []model.Condition{degradedOf(pool.Status.Conditions), degradedOf(volume.Status.Conditions)} {
		if c.Status != model.ConditionTrue || c.Reason != "DeviceTakenOut" || strings.Contains(c.Message, "/dev/c") ||
			!strings.Contains(c.Message, "device /dev/b was taken out of pool pool and holds volume v, ") ||
			!strings.Contains(c.Message, "put it back into spec.local.devices") {
			t.Errorf("%+v", c)
		}
	}
	report(1, nil)
	pool, volume = look()
	for _, c := range []model.Condition{degradedOf(pool.Status.Conditions), degradedOf(volume.Status.Conditions)} {
		if c.Status != model.ConditionFalse {
			t.Errorf("it is back: %+v", c)
		}
	}
}

func TestUnusableDevicesDegradeTheirPoolAndTheRestIsReported(t *testing.T) {
	v := onDevices()
	v.Observe(model.Observed{Version: term + 1, Pool: &model.PoolReport{UID: "p", Gateway: ref(1), CapacityBytes: 1 << 30,
		UnusableDevices: []string{"/dev/b: holds data that is not Sluice's: ext4"}}}, start)
	decision := v.DecidePool("pool", start)
	pool := *v.StoragePools["pool"]
	for _, a := range decision.Actions {
		modifies(a, &pool)
	}
	for _, c := range pool.Status.Conditions {
		switch c.Type {
		case model.ConditionReady:
			if c.Status != model.ConditionTrue {
				t.Errorf("%+v", c)
			}
		case model.ConditionDegraded:
			if c.Status != model.ConditionTrue || c.Reason != "DevicesUnusable" || !strings.Contains(c.Message, "ext4") {
				t.Errorf("%+v", c)
			}
		}
	}
	jobs := jobsOf(decision)
	if len(jobs) != 1 || jobs[0].Action != model.JobListImages {
		t.Fatalf("no gateway is asked for the content of the devices: %+v", jobs)
	}
	listImages(t, v, start, "volume-u", "volume-retained")
	pool = *listImages(t, v, start.Add(decide.ConfirmImagesAfter), "volume-u", "volume-retained")
	if s := pool.Status; s.OrphanedImageCount != 1 || s.OrphanedImages[0] != "volume-retained" {
		t.Errorf("%+v", s)
	}
}

// The free space that Ceph reports for a pool changes all the time, and each gateway reports it.
func TestThePoolUsageIsStoredWhenItDiffersByMoreThanNoise(t *testing.T) {
	v := onDevices()
	look := func(capacity, used int64) model.StoragePoolStatus {
		v.Observe(model.Observed{Version: term + 1, Pool: &model.PoolReport{UID: "p", Gateway: ref(1), CapacityBytes: capacity,
			UsedBytes: used}}, start)
		pool := *v.StoragePools["pool"]
		for _, a := range v.DecidePool("pool", start).Actions {
			modifies(a, &pool)
		}
		pool.Meta.Version++
		v.Put(&pool)
		return pool.Status
	}
	if status := look(1<<30, 1<<20); status.CapacityBytes != 1<<30 || status.UsedBytes != 1<<20 {
		t.Errorf("%+v", status)
	}
	if status := look(1<<30+1<<20, 2<<20); status.CapacityBytes != 1<<30 || status.UsedBytes != 1<<20 {
		t.Errorf("%+v", status)
	}
	if status := look(1<<30+1<<23, 2<<20); status.CapacityBytes != 1<<30+1<<23 || status.UsedBytes != 2<<20 {
		t.Errorf("%+v", status)
	}
}
