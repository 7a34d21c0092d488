package store

import (
	"context"
	"encoding/json"
	"fmt"
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
)

// JobDone ends a job: all thousandths of it are done.
const JobDone = 1000

// Job is management of images and files by a gateway. The replica that holds the gateway's stream sends it, again after
// every reconnection, until its result is stored. Doing it twice is harmless, so giving it to another gateway is, too.
type Job struct {
	// ID says what it is for (an object's uid and the action), so that asking twice is one job.
	ID string `json:"id"`
	// Gateway that does it, by number.
	Gateway uint32    `json:"gateway"`
	PoolUID string    `json:"poolUID"`
	Action  JobAction `json:"action"`
	// VolumeUID is set for snapshots: their owner takes them between commands.
	VolumeUID        string `json:"volumeUID,omitempty"`
	Location         string `json:"location"`
	SourceLocation   string `json:"sourceLocation,omitempty"`
	SnapshotLocation string `json:"snapshotLocation,omitempty"`
	SizeBytes        int64  `json:"sizeBytes,omitempty"`
	// Attempt is +1 each time it is given out anew.
	Attempt int       `json:"attempt"`
	Since   time.Time `json:"since"`
	Result  JobResult `json:"result,omitzero"`
	// Version is the store's.
	Version int64 `json:"-"`
}

// JobResult says how far a job is, or why it ended.
type JobResult struct {
	// DonePermille is 0…JobDone.
	DonePermille uint32 `json:"donePermille"`
	// Problem ends a job; Unsupported says that trying again is no use.
	Problem     string `json:"problem,omitempty"`
	Unsupported bool   `json:"unsupported,omitempty"`
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
// one attempt more and no result. It returns what is stored. Errors: ErrBusy where another one was stored meanwhile.
func (s *Store) PutJob(ctx context.Context, job Job) (*Job, error) {
	job.Attempt++
	job.Result = JobResult{}
	job.Since = s.now().UTC()
	return s.storeJob(ctx, job)
}

func (s *Store) storeJob(ctx context.Context, job Job) (*Job, error) {
	value, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	key := s.jobKey(job.ID)
	done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", job.Version)).
		Then(clientv3.OpPut(key, string(value))).Commit()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if !done.Succeeded {
		return nil, ErrBusy
	}
	job.Version = done.Header.Revision
	return &job, nil
}

// StoreJobResult keeps what the gateway of a connection says of its job. A result of a job that is gone, was given to another
// gateway or has ended is dropped without an error: nobody waits for it. Errors: ErrBusy.
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
		if job.Gateway != c.Ref.Number || job.Ended() {
			return nil
		}
		job.Result = result
		job.Result.DonePermille = min(job.Result.DonePermille, JobDone)
		job.Result.At = s.now().UTC()
		if _, err = s.storeJob(ctx, *job); err == ErrBusy {
			return errLost
		}
		return err
	})
}

// DeleteJob forgets a job at a version; one that changed meanwhile stays.
func (s *Store) DeleteJob(ctx context.Context, job *Job) error {
	key := s.jobKey(job.ID)
	_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", job.Version)).
		Then(clientv3.OpDelete(key)).Commit()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// VolumeLocation is where a volume's data is: a path below its local pool's directory, or the name of an RBD image. It
// is made of the uid, so that a name that is used again never finds the data of the one before (R13).
func VolumeLocation(v *model.Volume) string { return "volume-" + v.Meta.UID }

// SnapshotLocation is where a snapshot's data is.
func SnapshotLocation(x *model.Snapshot) string { return "snapshot-" + x.Meta.UID }
