package store_test

import (
	"errors"
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// jobNow returns the stored job; nil: none.
func jobNow(f *fixture, id string) *model.Job {
	f.t.Helper()
	var found *model.Job
	err := f.WatchJobs(f.t.Context(), 0, func(c store.RecordChange[*model.Job]) error {
		if c.Type == store.Bookmark {
			return errEnough
		}
		if c.Type == store.Put && c.Record.ID == id {
			found = c.Record
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		f.t.Fatal(err)
	}
	return found
}

func giveOut(f *fixture, job model.Job) *model.Job {
	f.t.Helper()
	given, err := f.term().PutJob(f.t.Context(), job)
	if err != nil {
		f.t.Fatal(err)
	}
	return given
}

func tell(c *store.Connection, f *fixture, id string, result model.JobResult) {
	f.t.Helper()
	if err := c.StoreJobResult(f.t.Context(), id, result); err != nil {
		f.t.Fatal(err)
	}
}

func done(attempt uint64) model.JobResult {
	return model.JobResult{AttemptID: attempt, DonePermille: model.JobDone}
}

// R2: otherwise a client that was not blocklisted would count as blocklisted.
func TestAResultOfAnEarlierAttemptEndsNoLaterOne(t *testing.T) {
	f := withGateways(t, 2)
	c := connect(f, "gw-1", "one")
	first := giveOut(f, model.Job{ID: "u.fence", Action: model.JobFenceClients, Gateway: 1, Clients: []string{"c1"}})
	again := *first
	again.Gateway = 2
	again = *giveOut(f, again)
	again.Gateway, again.Clients = 1, []string{"c1", "c2"}
	third := giveOut(f, again)
	tell(c, f, "u.fence", done(first.AttemptID))
	if jobNow(f, "u.fence").Ended() {
		t.Error("the third attempt, for two clients, has ended with the first one's result, for one")
	}
	tell(c, f, "u.fence", done(third.AttemptID))
	if !jobNow(f, "u.fence").Succeeded() {
		t.Error("its own result does not end it")
	}
}

// Attempts are counted from 1 again.
func TestAResultOfAJobThatWasForgottenEndsNoOtherOfItsName(t *testing.T) {
	f := withGateways(t, 1)
	c := connect(f, "gw-1", "one")
	job := model.Job{ID: "u.fence", Action: model.JobFenceClients, Gateway: 1, Clients: []string{"c1"}}
	first := giveOut(f, job)
	if err := f.term().DeleteJob(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	job.Clients = []string{"c1", "c2"}
	second := giveOut(f, job)
	tell(c, f, "u.fence", done(first.AttemptID))
	if second.Attempt != first.Attempt || jobNow(f, "u.fence").Ended() {
		t.Errorf("attempt %d after %d has ended with the other one's result", second.Attempt, first.Attempt)
	}
}

func TestAGatewayOfAnEarlierVersionFencesNoGatewayBeyondAFirstAttempt(t *testing.T) {
	f := withGateways(t, 2)
	c := connect(f, "gw-1", "one")
	job := model.Job{ID: "u.fence", Action: model.JobFenceClients, Gateway: 2, Clients: []string{"c1"}}
	again := *giveOut(f, job)
	again.Gateway, again.Clients = 1, []string{"c1", "c2"}
	giveOut(f, again)
	tell(c, f, "u.fence", model.JobResult{DonePermille: 500})
	if now := jobNow(f, "u.fence"); now == nil || now.Result.DonePermille != 500 {
		t.Errorf("its progress: %+v", now)
	}
	tell(c, f, "u.fence", done(0))
	if now := jobNow(f, "u.fence"); now != nil {
		t.Fatalf("attempt %d, ended: %v, want it forgotten so that it is given out as a first attempt", now.Attempt, now.Ended())
	}
	job.Gateway, job.Clients = 1, again.Clients
	giveOut(f, job)
	tell(c, f, "u.fence", done(0))
	if now := jobNow(f, "u.fence"); !now.Succeeded() || !slices.Equal(now.Clients, again.Clients) {
		t.Errorf("the first attempt: %+v", now)
	}
}

func TestJobReportsOfAGatewayOfAnEarlierVersionCount(t *testing.T) {
	f := withGateways(t, 1)
	c := connect(f, "gw-1", "one")
	again := *giveOut(f, model.Job{ID: "u.delete", Action: model.JobDeleteImage, Gateway: 1})
	giveOut(f, again)
	tell(c, f, "u.delete", done(0))
	if !jobNow(f, "u.delete").Succeeded() {
		t.Error("the second attempt does not end")
	}
}

func TestAReplacedConnectionEndsNoJob(t *testing.T) {
	f := withGateways(t, 1)
	old := connect(f, "gw-1", "one")
	job := giveOut(f, model.Job{ID: "u.resize", Action: model.JobDeleteImage, Gateway: 1})
	connect(f, "gw-1", "two")
	if err := old.StoreJobResult(t.Context(), "u.resize", done(job.AttemptID)); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("it receives %v", err)
	}
	if jobNow(f, "u.resize").Ended() {
		t.Error("the job has ended")
	}
}

func TestAConnectionKnowsWhetherTheStoreTakesItsWrites(t *testing.T) {
	f := withGateways(t, 1)
	c := connect(f, "gw-1", "one")
	if err := c.Writable(t.Context()); err != nil {
		t.Error(err)
	}
	other := connect(f, "gw-1", "two")
	if err := c.Writable(t.Context()); !errors.Is(err, store.ErrReplaced) {
		t.Errorf("a replaced one gets %v", err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Writable(t.Context()); !errors.Is(err, store.ErrExpired) {
		t.Errorf("a closed one gets %v", err)
	}
}
