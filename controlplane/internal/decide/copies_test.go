package decide_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

const mebibyte = 1 << 20

// copied returns a view with volume `origin` of 10 MiB, its snapshot `monday` of that size, and volume `v` of 1 MiB that is to be
// made from one of them.
func copied(rbd bool, from model.VolumeSource) *decide.LeaderView {
	v := known(1)
	pool := &model.StoragePool{Meta: model.Meta{Name: "pool", UID: "p", Version: 1}}
	if rbd {
		pool.Spec.RBD = &model.RBDPool{Pool: "rbd"}
		recorded(v, ref(1), 1, model.RadosClient{Client: "c1"})
	} else {
		pool.Spec.Local = &model.LocalPool{Node: "node-1", Directory: "/srv"}
	}
	v.Put(pool)
	v.Put(&model.Volume{Meta: model.Meta{Name: "origin", UID: "o", Version: 1}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: 10 * mebibyte},
		Status: model.VolumeStatus{CapacityBytes: 10 * mebibyte, Ownership: model.Ownership{State: model.Unowned}}})
	v.Put(&model.Snapshot{Meta: model.Meta{Name: "monday", UID: "s", Version: 1}, Spec: model.SnapshotSpec{Volume: "origin"},
		Status: model.SnapshotStatus{Ready: true, SizeBytes: 10 * mebibyte}})
	v.Put(&model.Volume{Meta: model.Meta{Name: "v", UID: "u", Version: 1}, Spec: model.VolumeSpec{Pool: "pool", SizeBytes: mebibyte,
		Source: from}, Status: model.VolumeStatus{Ownership: model.Ownership{State: model.Unowned}}})
	return v
}

// decided returns volume `v` after a decision, and the jobs that the decision assigns.
func decided(v *decide.LeaderView) (*model.Volume, []*model.Job) {
	decision := v.DecideVolume("v", start)
	volume := *v.Volumes["v"]
	for _, a := range decision.Actions {
		modifies(a, &volume)
	}
	return &volume, jobsOf(decision)
}

func resized(v *decide.LeaderView, name string, size int64) {
	volume := *v.Volumes[name]
	volume.Meta.Version += 10
	volume.Spec.SizeBytes = size
	v.Put(&volume)
}

// A snapshot has no size before it is ready, so only the leader can detect that a volume made from it is too small.
func TestACopyThatIsSmallerThanItsSourceIsNotMadeBeforeItIsResized(t *testing.T) {
	for name, from := range map[string]model.VolumeSource{"snapshot monday": {Snapshot: "monday"}, "volume origin": {Volume: "origin"}} {
		for _, rbd := range []bool{false, true} {
			v := copied(rbd, from)
			volume, jobs := decided(v)
			condition := conditionOf(t, volume.Status.Conditions, model.ConditionReady)
			if len(jobs) != 0 || condition.Status != model.ConditionFalse || condition.Reason != "SourceLarger" ||
				!strings.Contains(condition.Message, name+" has 10485760 bytes") || !strings.Contains(condition.Message, "volume resize v --size 10485760") {
				t.Errorf("%s, rbd %v: %d jobs, %+v", name, rbd, len(jobs), condition)
			}
			resized(v, "v", 10*mebibyte)
			if _, jobs = decided(v); len(jobs) != 1 || jobs[0].Action != model.JobCloneImage || jobs[0].SizeBytes != 10*mebibyte {
				t.Errorf("%s, rbd %v: resized, and %+v", name, rbd, jobs)
			}
		}
	}
}

// The gateway does not report whether a copy was made before or after its source grew.
func TestACopyWhoseSourceGrewIsNotReadyBeforeItIsResized(t *testing.T) {
	v := copied(false, model.VolumeSource{Volume: "origin"})
	resized(v, "v", 10*mebibyte)
	_, jobs := decided(v)
	if len(jobs) != 1 {
		t.Fatalf("%+v", jobs)
	}
	resized(v, "origin", 12*mebibyte) // the image may grow before the capacity does
	jobs[0].Version, jobs[0].Result = 9, model.JobResult{DonePermille: model.JobDone, At: start}
	v.PutJob(jobs[0])
	volume, _ := decided(v)
	if condition := conditionOf(t, volume.Status.Conditions, model.ConditionReady); volume.Status.CapacityBytes != 0 || condition.Reason != "SourceLarger" {
		t.Fatalf("capacity %d, %+v", volume.Status.CapacityBytes, condition)
	}
	resized(v, "v", 12*mebibyte)
	volume, _ = decided(v)
	volume.Meta.Version++
	v.Put(volume)
	v.DeleteJob(jobs[0].ID, 99)
	if _, jobs = decided(v); len(jobs) != 1 || jobs[0].Action != model.JobResizeImage || jobs[0].SizeBytes != 12*mebibyte {
		t.Errorf("resized, and %+v", jobs)
	}
}

// The image grows before the capacity does, and the snapshot may have been taken in between.
func TestASnapshotOfAVolumeThatGrowsIsAsLargeAsItsImageCanHaveBeen(t *testing.T) {
	v := copied(false, model.VolumeSource{Snapshot: "monday"})
	monday := *v.Snapshots["monday"]
	monday.Meta.Version, monday.Status = 2, model.SnapshotStatus{}
	v.Put(&monday)
	jobs := jobsOf(v.DecideSnapshot("monday", start))
	if len(jobs) != 1 {
		t.Fatalf("%+v", jobs)
	}
	resized(v, "origin", 12*mebibyte)
	jobs[0].Version, jobs[0].Result = 9, model.JobResult{DonePermille: model.JobDone, At: start}
	v.PutJob(jobs[0])
	for _, a := range v.DecideSnapshot("monday", start).Actions {
		modifies(a, &monday)
	}
	if !monday.Status.Ready || monday.Status.SizeBytes != 12*mebibyte {
		t.Errorf("%+v", monday.Status)
	}
}
