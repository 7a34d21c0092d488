package dispatch

import (
	"slices"

	"sluice.dev/sluice/controlplane/internal/store"
)

// maxJobs bounds the jobs that a gateway is given at a time: half of what it takes (limits::kMaxJobs). What is beyond that it
// would drop.
const maxJobs = 128

// jobQueue says which of a gateway's jobs it is to be sent, and keeps the others until some have ended.
type jobQueue struct {
	gateway uint32
	// sent are the jobs it was sent and that have not ended, with their attempt; waiting the others, in order.
	sent    map[string]int
	waiting []*store.Job
}

// take takes up a change of a job, and returns what is to be sent now.
func (q *jobQueue) take(change store.RecordChange[*store.Job]) []*store.Job {
	job := change.Record
	switch change.Type {
	case store.Reset: // all that there are follow
		q.sent, q.waiting = map[string]int{}, nil
		return nil
	case store.Put, store.Deleted:
	default:
		return nil
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(j *store.Job) bool { return j.ID == job.ID })
	attempt, sent := q.sent[job.ID]
	if change.Type == store.Deleted || job.Gateway != q.gateway || job.Ended() {
		delete(q.sent, job.ID)
	} else if !sent || attempt != job.Attempt {
		delete(q.sent, job.ID)
		q.waiting = append(q.waiting, job)
	}
	free := min(maxJobs-len(q.sent), len(q.waiting))
	next := slices.Clone(q.waiting[:free])
	q.waiting = q.waiting[free:]
	for _, job := range next {
		q.sent[job.ID] = job.Attempt
	}
	return next
}
