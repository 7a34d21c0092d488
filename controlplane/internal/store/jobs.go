package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) jobPrefix() string       { return s.prefix + "jobs/" }
func (s *Store) jobKey(id string) string { return s.jobPrefix() + id }

func decodeJob(key string, value []byte, version int64) (*model.Job, error) {
	job := &model.Job{Version: version}
	if err := json.Unmarshal(value, job); err != nil {
		return nil, fmt.Errorf("%s in the store: %w", key, err)
	}
	return job, nil
}

// WatchJobs reports every change of jobs, as Collection.Watch does for objects.
func (s *Store) WatchJobs(ctx context.Context, after int64, tell func(RecordChange[*model.Job]) error) error {
	return records[*model.Job]{s, s.jobPrefix(), decodeJob}.watch(ctx, after, tell)
}

// PutJob assigns a job to the gateway that it names: a new job if its Version is 0, else the stored job of that version. The job
// has one attempt more and no result. PutJob returns the stored job. A job that makes something is assigned only while its object
// exists and is not being deleted; an object with jobs is not removed. Errors: ErrBusy if another one was stored meanwhile, or
// its object was deleted.
func (term *Term) PutJob(ctx context.Context, job model.Job) (*model.Job, error) {
	job = job.GivenOut(term.store.now().UTC())
	job.AttemptID = rand.Uint64N(math.MaxUint64) + 1
	if job.Action.NeedsObject() {
		uid, _, _ := strings.Cut(job.ID, ".")
		return term.storeJob(ctx, job, clientv3.Compare(clientv3.Value(term.store.aliveKey(job.Kind, job.Name)), "=", uid))
	}
	return term.storeJob(ctx, job)
}

// withoutJobs allows the removal of an object only if it has no jobs: whatever they make would be left behind.
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

func (term *Term) storeJob(ctx context.Context, job model.Job, guard ...clientv3.Cmp) (*model.Job, error) {
	t := term.begin()
	for _, cmp := range guard {
		t.compare(cmp, nil)
	}
	stored, err := term.store.putJob(ctx, t, job)
	if errors.Is(err, errLost) {
		return nil, ErrBusy
	}
	return stored, err
}

// putJob replaces the job of that version.
func (s *Store) putJob(ctx context.Context, t *tx, job model.Job) (*model.Job, error) {
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

// StoreJobResult stores a result that a gateway reported for its job. Without an error, it drops the result of a job that is
// deleted, was assigned again or to another gateway, or has ended, because no component waits for it. Errors: ErrReplaced,
// ErrExpired, ErrBusy.
func (c *Connection) StoreJobResult(ctx context.Context, id string, result model.JobResult) error {
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
		job.Result.DonePermille = min(job.Result.DonePermille, model.JobDone)
		job.Result.At = s.now().UTC()
		var t tx
		t.compare(clientv3.Compare(clientv3.LeaseValue(c.key), "=", c.lease), c.mismatchError)
		if !known && job.Action == model.JobFenceClients && job.Attempt != 1 && job.Succeeded() {
			// The result may belong to an attempt that named fewer clients. A client that was not blocklisted must never count as
			// blocklisted (R2). The job is deleted, so it is assigned again as a first attempt.
			return s.deleteJob(ctx, &t, job)
		}
		_, err = s.putJob(ctx, &t, *job)
		return err
	})
}

// DeleteJob deletes a job at its version. A job that changed meanwhile stays.
func (term *Term) DeleteJob(ctx context.Context, job *model.Job) error {
	return ignoreLost(term.store.deleteJob(ctx, term.begin(), job))
}

func (s *Store) deleteJob(ctx context.Context, t *tx, job *model.Job) error {
	t.compare(clientv3.Compare(clientv3.ModRevision(s.jobKey(job.ID)), "=", job.Version), nil)
	t.delete(s.jobKey(job.ID))
	_, err := s.commit(ctx, t)
	return err
}
