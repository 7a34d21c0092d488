package dispatch

import (
	"fmt"
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func job(id string, gateway uint32, attempt, done int) *model.Job {
	j := &model.Job{ID: id, Gateway: gateway}
	j.Attempt = attempt
	j.Result.DonePermille = uint32(done)
	return j
}

func TestAGatewayIsSentEveryJobOfItsOwnButNeverMoreThanItTakesAtATime(t *testing.T) {
	q := jobQueue{gateway: 1}
	var sent []string
	take := func(kind store.ChangeType, j *model.Job) {
		for _, next := range q.apply(store.RecordChange[*model.Job]{Type: kind, Record: j}) {
			sent = append(sent, next.ID)
		}
		if len(q.sent) > maxJobs {
			t.Fatalf("%d jobs at a time", len(q.sent))
		}
	}
	take(store.Reset, nil)
	const count = 3 * maxJobs
	var all []string
	for i := range count {
		all = append(all, fmt.Sprint("job-", i))
		take(store.Put, job(all[i], 1, 1, 0))
		take(store.Put, job(fmt.Sprint("other-", i), 2, 1, 0))
	}
	if !slices.Equal(sent, all[:maxJobs]) {
		t.Errorf("at first %d are sent", len(sent))
	}
	for i, id := range all { // some end, some are deleted, some are assigned to another gateway
		switch i % 3 {
		case 0:
			take(store.Put, job(id, 1, 1, model.JobDone))
		case 1:
			take(store.Deleted, job(id, 1, 1, 0))
		default:
			take(store.Put, job(id, 2, 2, 0))
		}
	}
	if !slices.Equal(sent, all) {
		t.Errorf("%d of %d are sent, or in another order", len(sent), count)
	}
	if len(q.sent)+len(q.waiting) != 0 {
		t.Errorf("left: %v, %v", q.sent, q.waiting)
	}
}

// A watch that restarts does not report that the job did not exist meanwhile.
func TestAJobThatWasForgottenAndAssignedAgainIsSentAgain(t *testing.T) {
	q := jobQueue{gateway: 1, sent: map[string]attempt{}}
	for id := range uint64(2) {
		again := job("a", 1, 1, 0)
		again.AttemptID = id + 7
		got := q.apply(store.RecordChange[*model.Job]{Type: store.Put, Record: again})
		if len(got) != 1 || jobMessage(got[0]).GetAttempt() != id+7 {
			t.Errorf("attempt %d: %v", id+7, got)
		}
	}
}

func TestAJobIsSentAgainWithItsNextAttemptOnly(t *testing.T) {
	q := jobQueue{gateway: 1, sent: map[string]attempt{}}
	for _, step := range []struct {
		job  *model.Job
		sent bool
	}{{job("a", 1, 1, 0), true}, {job("a", 1, 1, 500), false}, {job("a", 1, 2, 0), true}, {job("a", 1, 2, model.JobDone), false}} {
		if got := q.apply(store.RecordChange[*model.Job]{Type: store.Put, Record: step.job}); (len(got) == 1) != step.sent {
			t.Errorf("attempt %d: %v", step.job.Attempt, got)
		}
	}
}
