package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

// JobAction is what a job does.
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

// ListImagesJob ends the id of the job that lists a pool's images.
const ListImagesJob = ".images"

// JobDone ends a job: all thousandths of it are done.
const JobDone = 1000

// Job is management of images and files by a gateway. The replica that holds the gateway's stream sends it, again after
// every reconnection, until its result is stored. Doing it twice is harmless, so giving it to another gateway is, too.
type Job struct {
	// ID says what it is for (an object's uid and the action), so that asking twice is one job.
	ID string `json:"id"`
	// Kind and Name of the object that it is for; its uid begins the ID, up to the first '.'.
	Kind model.Kind `json:"kind,omitempty"`
	Name string     `json:"name,omitempty"`
	// Gateway that does it, by number; 0: nobody yet.
	Gateway uint32    `json:"gateway"`
	PoolUID string    `json:"poolUID"`
	Action  JobAction `json:"action"`
	// VolumeUID is set for snapshots, which their owner takes between commands, and for deletions: records beside the data go by it.
	VolumeUID        string `json:"volumeUID,omitempty"`
	Location         string `json:"location"`
	SourceLocation   string `json:"sourceLocation,omitempty"`
	SnapshotLocation string `json:"snapshotLocation,omitempty"`
	SizeBytes        int64  `json:"sizeBytes,omitempty"`
	// SnapshotOf is the image that SourceLocation is a snapshot of, in an RBD pool.
	SnapshotOf string `json:"snapshotOf,omitempty"`
	// Image that is adopted.
	Image string `json:"image,omitempty"`
	// TrashSeconds is how long what is deleted can be restored; 0: it is not kept.
	TrashSeconds int64 `json:"trashSeconds,omitempty"`
	// Clients to be blocklisted, for ExpireSeconds.
	Clients       []string `json:"clients,omitempty"`
	ExpireSeconds int64    `json:"expireSeconds,omitempty"`
	// Attempt is +1 each time it is given out anew; it begins again where the job was forgotten meanwhile.
	Attempt int `json:"attempt"`
	// AttemptID tells this attempt from every other of the same ID, also from those of jobs that were forgotten. 0: a control
	// plane of an earlier version gave it out, or has stored its progress.
	AttemptID uint64    `json:"attemptID,omitempty"`
	Since     time.Time `json:"since"`
	Result    JobResult `json:"result,omitzero"`
	// Version is the store's.
	Version int64 `json:"-"`
}

// JobResult says how far a job is, or why it ended.
type JobResult struct {
	// AttemptID is the attempt's that it is of; 0: a gateway of an earlier version says it. It is not kept.
	AttemptID uint64 `json:"-"`
	// DonePermille is 0…JobDone.
	DonePermille uint32 `json:"donePermille"`
	// Problem ends a job; Unsupported says that trying again is no use.
	Problem     string `json:"problem,omitempty"`
	Unsupported bool   `json:"unsupported,omitempty"`
	// SizeBytes of an image that was adopted, Images in a pool.
	SizeBytes int64    `json:"sizeBytes,omitempty"`
	Images    []string `json:"images,omitempty"`
	// At is when the result was stored.
	At time.Time `json:"at,omitzero"`
}

// Ended says that the job is no longer to be sent.
func (j *Job) Ended() bool { return j.Result.DonePermille >= JobDone || j.Result.Problem != "" }

// Succeeded says that it ended and did what it should.
func (j *Job) Succeeded() bool { return j.Result.DonePermille >= JobDone && j.Result.Problem == "" }

func (s *Store) jobPrefix() string       { return s.prefix + "jobs/" }
func (s *Store) jobKey(id string) string { return s.jobPrefix() + id }

func decodeJob(key string, value []byte, version int64) (*Job, error) {
	job := &Job{Version: version}
	if err := json.Unmarshal(value, job); err != nil {
		return nil, fmt.Errorf("%s in the store: %w", key, err)
	}
	return job, nil
}

// WatchJobs tells every change of jobs, as Collection.Watch does of objects.
func (s *Store) WatchJobs(ctx context.Context, after int64, tell func(RecordChange[*Job]) error) error {
	return records[*Job]{s, s.jobPrefix(), decodeJob}.watch(ctx, after, tell)
}

// PutJob gives a job out: a new one where its Version is 0, or that version anew, to be done by the gateway named, with
// one attempt more and no result. It returns what is stored. A job that makes something is given out only while its object
// is there and not deleted; an object of which there are jobs is not removed. Errors: ErrBusy where another one was stored
// meanwhile, or its object was deleted.
func (s *Store) PutJob(ctx context.Context, job Job) (*Job, error) {
	job.Attempt++
	job.AttemptID = rand.Uint64N(math.MaxUint64) + 1
	job.Result = JobResult{}
	job.Since = s.now().UTC()
	switch job.Action {
	case JobCreateImage, JobCloneImage, JobResizeImage, JobCreateSnapshotImage, JobAdoptImage, JobRollBackImage:
		uid, _, _ := strings.Cut(job.ID, ".")
		return s.storeJob(ctx, job, clientv3.Compare(clientv3.Value(s.aliveKey(job.Kind, job.Name)), "=", uid))
	}
	return s.storeJob(ctx, job)
}

// withoutJobs lets an object be removed only when there are no jobs for it: what they make would be left behind.
func (s *Store) withoutJobs(t *tx, kind model.Kind, meta *model.Meta) {
	prefix := s.jobPrefix() + meta.UID + "."
	t.compare(absent(prefix), func(ctx context.Context) error {
		got, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || got.Count == 0 {
			return err
		}
		return &ConflictError{kind, meta.Name}
	})
}

func (s *Store) storeJob(ctx context.Context, job Job, guard ...clientv3.Cmp) (*Job, error) {
	var t tx
	for _, cmp := range guard {
		t.compare(cmp, nil)
	}
	stored, err := s.putJob(ctx, &t, job)
	if errors.Is(err, errLost) {
		return nil, ErrBusy
	}
	return stored, err
}

// putJob stores a job in the place of its version.
func (s *Store) putJob(ctx context.Context, t *tx, job Job) (*Job, error) {
	value, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	t.compare(clientv3.Compare(clientv3.ModRevision(s.jobKey(job.ID)), "=", job.Version), nil)
	t.put(s.jobKey(job.ID), string(value))
	if job.Version, err = s.commit(ctx, t); err != nil {
		return nil, err
	}
	return &job, nil
}

// StoreJobResult keeps what the gateway of a connection says of its job. A result of a job that is gone, was given to another
// gateway, was given out anew or has ended is dropped without an error: nobody waits for it. Errors: ErrReplaced, ErrExpired,
// ErrBusy.
func (c *Connection) StoreJobResult(ctx context.Context, id string, result JobResult) error {
	s := c.store
	return retry(ctx, func() error {
		got, err := s.client.Get(ctx, s.jobKey(id))
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if len(got.Kvs) == 0 {
			return nil
		}
		job, err := decodeJob(s.jobKey(id), got.Kvs[0].Value, got.Kvs[0].ModRevision)
		if err != nil {
			return err
		}
		known := job.AttemptID != 0 && result.AttemptID != 0
		if job.Gateway != c.Ref.Number || job.Ended() || known && result.AttemptID != job.AttemptID {
			return nil
		}
		job.Result = result
		job.Result.DonePermille = min(job.Result.DonePermille, JobDone)
		job.Result.At = s.now().UTC()
		var t tx
		t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.why)
		if !known && job.Action == JobFenceClients && job.Attempt != 1 && job.Succeeded() {
			// It may be of an attempt that named fewer clients, and one that was not shut out must never pass for one that was
			// (R2). Forgotten, the job is given out as a first attempt.
			return s.deleteJob(ctx, &t, job)
		}
		_, err = s.putJob(ctx, &t, *job)
		return err
	})
}

// DeleteJob forgets a job at a version; one that changed meanwhile stays.
func (s *Store) DeleteJob(ctx context.Context, job *Job) error {
	return unlessLost(s.deleteJob(ctx, &tx{}, job))
}

func (s *Store) deleteJob(ctx context.Context, t *tx, job *Job) error {
	t.compare(clientv3.Compare(clientv3.ModRevision(s.jobKey(job.ID)), "=", job.Version), nil)
	t.delete(s.jobKey(job.ID))
	_, err := s.commit(ctx, t)
	return err
}

// VolumeLocation is where a volume's data is: a path below its local pool's directory, or the name of an RBD image. It
// is made of the uid, so that a name that is used again never finds the data of the one before (R13).
func VolumeLocation(v *model.Volume) string { return "volume-" + v.Meta.UID }

// SnapshotLocation is where a snapshot's data is.
func SnapshotLocation(x *model.Snapshot) string { return "snapshot-" + x.Meta.UID }
