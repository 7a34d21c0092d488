package model

import "time"

// JobAction is the operation of a job.
type JobAction string

// The actions, as in gateway_stream.proto.
const (
	JobCreateImage         JobAction = "CreateImage"
	JobResizeImage         JobAction = "ResizeImage"
	JobDeleteImage         JobAction = "DeleteImage"
	JobCreateSnapshotImage JobAction = "CreateSnapshotImage"
	JobDeleteSnapshotImage JobAction = "DeleteSnapshotImage"
	JobCloneImage          JobAction = "CloneImage"
	JobFlattenImage        JobAction = "FlattenImage"
	JobAdoptImage          JobAction = "AdoptImage"
	JobRollBackImage       JobAction = "RollBackImage"
	JobListImages          JobAction = "ListImages"
	JobFenceClients        JobAction = "FenceClients"
)

// ListImagesJob is the suffix of the id of the job that lists a pool's images.
const ListImagesJob = ".images"

// JobDone is the progress of a job that succeeded, in thousandths.
const JobDone = 1000

// Job is an operation of a gateway on images and files. The replica that holds the gateway's stream sends the job after every
// connection until its result is stored. A job is idempotent, so a second gateway may carry it out too.
type Job struct {
	// ID is made of the object's uid and the action, so two requests for the same operation are one job.
	ID string `json:"id"`
	// Kind and Name of the object. The ID starts with the object's uid, up to the first '.'.
	Kind Kind   `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Gateway that carries the job out, by number. 0: none yet.
	Gateway uint32    `json:"gateway"`
	PoolUID string    `json:"poolUID"`
	Action  JobAction `json:"action"`
	// VolumeUID is set for snapshots, which the volume's owner takes between commands, and for deletions, because the records
	// beside the data are named by it.
	VolumeUID        string `json:"volumeUID,omitempty"`
	Location         string `json:"location"`
	SourceLocation   string `json:"sourceLocation,omitempty"`
	SnapshotLocation string `json:"snapshotLocation,omitempty"`
	SizeBytes        int64  `json:"sizeBytes,omitempty"`
	// SourceBytes is the recorded size of the image that the job copies or grows; 0: unknown. A gateway refuses a shorter file of a
	// local pool.
	SourceBytes int64 `json:"sourceBytes,omitempty"`
	// SnapshotOf is the image that SourceLocation is a snapshot of, in an RBD pool.
	SnapshotOf string `json:"snapshotOf,omitempty"`
	// Image to adopt.
	Image string `json:"image,omitempty"`
	// TrashSeconds is how long a deleted image can be restored. 0: it cannot.
	TrashSeconds int64 `json:"trashSeconds,omitempty"`
	// Clients to blocklist for ExpireSeconds.
	Clients       []string `json:"clients,omitempty"`
	ExpireSeconds int64    `json:"expireSeconds,omitempty"`
	// Attempt counts how often the job was assigned. It starts again after the job was deleted.
	Attempt int `json:"attempt"`
	// AttemptID differs for every attempt of the same ID, also across deleted jobs. 0: a control plane of an earlier version assigned
	// the job or stored its progress.
	AttemptID uint64    `json:"attemptID,omitempty"`
	Since     time.Time `json:"since"`
	Result    JobResult `json:"result,omitzero"`
	// Version of the record in the store.
	Version int64 `json:"-"`
}

// JobResult is the progress of a job, or the reason of its end.
type JobResult struct {
	// AttemptID of the attempt that the result belongs to. 0: the gateway is of an earlier version. It is not stored.
	AttemptID uint64 `json:"-"`
	// DonePermille is 0…JobDone.
	DonePermille uint32 `json:"donePermille"`
	// Problem ends a job. Unsupported: every further attempt would fail too.
	Problem     string `json:"problem,omitempty"`
	Unsupported bool   `json:"unsupported,omitempty"`
	// SizeBytes of the adopted image. Images are those of a pool.
	SizeBytes int64    `json:"sizeBytes,omitempty"`
	Images    []string `json:"images,omitempty"`
	// At is the time at which the result was stored.
	At time.Time `json:"at,omitzero"`
}

// Ended reports whether the job succeeded or failed. An ended job is not sent any more.
func (j *Job) Ended() bool { return j.Result.DonePermille >= JobDone || j.Result.Problem != "" }

// Succeeded reports whether the job ended without a problem.
func (j *Job) Succeeded() bool { return j.Result.DonePermille >= JobDone && j.Result.Problem == "" }

// NeedsObject reports whether jobs of this action are assigned only while their object exists and is not being deleted. They make
// something that would be left behind.
func (a JobAction) NeedsObject() bool {
	switch a {
	case JobCreateImage, JobCloneImage, JobResizeImage, JobCreateSnapshotImage, JobAdoptImage, JobRollBackImage:
		return true
	}
	return false
}

// GivenOut returns the job as it is assigned: with one attempt more, and without a result.
func (j *Job) GivenOut(now time.Time) Job {
	given := *j
	given.Attempt++
	given.Result, given.Since = JobResult{}, now
	return given
}
