package dispatch

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// maxJobs bounds the jobs that a gateway has at a time: half of what it accepts (limits::kMaxJobs). It would drop more.
const maxJobs = 128

// jobQueue selects the jobs of a gateway that are sent, and keeps the others until some have ended.
type jobQueue struct {
	gateway uint32
	// sent has the jobs that were sent and have not ended, with their attempt; waiting the others, in order.
	sent    map[string]attempt
	waiting []*model.Job
}

// attempt identifies an attempt of a job.
type attempt struct {
	count int
	id    uint64
}

func attemptOf(job *model.Job) attempt { return attempt{job.Attempt, job.AttemptID} }

// apply applies a change of a job, and returns the jobs that must be sent now.
func (q *jobQueue) apply(change store.RecordChange[*model.Job]) []*model.Job {
	job := change.Record
	switch change.Type {
	case store.Reset: // all present jobs follow
		q.sent, q.waiting = map[string]attempt{}, nil
		return nil
	case store.Put, store.Deleted:
	default:
		return nil
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(j *model.Job) bool { return j.ID == job.ID })
	last, sent := q.sent[job.ID]
	if change.Type == store.Deleted || job.Gateway != q.gateway || job.Ended() {
		delete(q.sent, job.ID)
	} else if !sent || last != attemptOf(job) {
		delete(q.sent, job.ID)
		q.waiting = append(q.waiting, job)
	}
	free := min(maxJobs-len(q.sent), len(q.waiting))
	next := slices.Clone(q.waiting[:free])
	q.waiting = q.waiting[free:]
	for _, job := range next {
		q.sent[job.ID] = attemptOf(job)
	}
	return next
}

func jobMessage(j *model.Job) *pb.Job {
	message := &pb.Job{Id: j.ID, Attempt: j.AttemptID, PoolUid: j.PoolUID}
	switch j.Action {
	case model.JobCreateImage:
		message.Action = &pb.Job_Create{Create: &pb.CreateImage{Location: j.Location, SizeBytes: j.SizeBytes}}
	case model.JobResizeImage:
		message.Action = &pb.Job_Resize{Resize: &pb.ResizeImage{Location: j.Location, SizeBytes: j.SizeBytes,
			PresentBytes: j.SourceBytes}}
	case model.JobDeleteImage:
		message.Action = &pb.Job_Delete{Delete: &pb.DeleteImage{Location: j.Location, TrashSeconds: j.TrashSeconds,
			VolumeUid: j.VolumeUID}}
	case model.JobCreateSnapshotImage:
		message.Action = &pb.Job_Snapshot{Snapshot: &pb.CreateSnapshotImage{VolumeUid: j.VolumeUID, Location: j.Location,
			SnapshotLocation: j.SnapshotLocation, VolumeBytes: j.SizeBytes}}
	case model.JobDeleteSnapshotImage:
		message.Action = &pb.Job_DeleteSnapshot{DeleteSnapshot: &pb.DeleteSnapshotImage{Location: j.Location,
			SnapshotLocation: j.SnapshotLocation}}
	case model.JobCloneImage:
		message.Action = &pb.Job_Clone{Clone: &pb.CloneImage{SourceLocation: j.SourceLocation, Location: j.Location,
			SizeBytes: j.SizeBytes, SnapshotOf: j.SnapshotOf, SourceBytes: j.SourceBytes}}
	case model.JobFlattenImage:
		message.Action = &pb.Job_Flatten{Flatten: &pb.FlattenImage{Location: j.Location, VolumeUid: j.VolumeUID}}
	case model.JobAdoptImage:
		message.Action = &pb.Job_Adopt{Adopt: &pb.AdoptImage{Image: j.Image, Location: j.Location}}
	case model.JobRollBackImage:
		message.Action = &pb.Job_RollBack{RollBack: &pb.RollBackImage{Location: j.Location, SnapshotLocation: j.SnapshotLocation}}
	case model.JobListImages:
		message.Action = &pb.Job_ListImages{ListImages: &pb.ListImages{}}
	case model.JobFenceClients:
		message.Action = &pb.Job_FenceClients{FenceClients: &pb.FenceClients{Clients: j.Clients, ExpireSeconds: j.ExpireSeconds}}
	}
	return message
}
