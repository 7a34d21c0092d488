package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/model"
)

// keptStarts stores starts of findings in memory.
type keptStarts struct {
	starts map[fault]model.FindingStart
	err    error
}

func (k *keptStarts) BeginFinding(_ context.Context, start model.FindingStart) (bool, error) {
	if _, exists := k.starts[faultOf(start)]; exists || k.err != nil {
		return false, k.err
	}
	k.starts[faultOf(start)] = start
	return true, nil
}

func (k *keptStarts) EndFinding(_ context.Context, start model.FindingStart) (bool, error) {
	_, exists := k.starts[faultOf(start)]
	delete(k.starts, faultOf(start))
	return exists, k.err
}

func (k *keptStarts) all() []model.FindingStart {
	var all []model.FindingStart
	for _, start := range k.starts {
		all = append(all, start)
	}
	return all
}

type journalTest struct {
	*journal
	kept   *keptStarts
	events []string
	now    time.Time
}

func newJournalTest() *journalTest {
	j := &journalTest{kept: &keptStarts{starts: map[fault]model.FindingStart{}}, now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	j.restart()
	return j
}

// restart is another replica that leads.
func (j *journalTest) restart() {
	j.journal = newJournal(j.kept, func(kind model.Kind, name string, warning bool, reason, message string) {
		j.events = append(j.events, fmt.Sprintf("%s %s %v %s: %s", kind, name, warning, reason, message))
	}, slog.New(slog.DiscardHandler))
}

func (j *journalTest) pass(span time.Duration, items ...findings.Item) {
	for end := j.now.Add(span); j.now.Before(end); j.now = j.now.Add(findingsInterval) {
		j.observe(context.Background(), items, j.kept.all(), j.now)
	}
}

func itemOf(name string, severity findings.Severity, since time.Time) findings.Item {
	return findings.Item{Rule: findings.Rules[0], Ref: findings.Ref{Kind: model.KindHost, Name: name}, Severity: severity, Cause: "is broken",
		Since: since}
}

func TestAFindingHasOneEventWhenItBeginsAndOneWhenItEnds(t *testing.T) {
	j := newJournalTest()
	id, began := findings.Rules[0].ID, j.now.Add(-10*time.Second)
	item := itemOf("web", findings.Warning, began)
	j.pass(time.Minute, item)
	j.restart() // the next leader does not repeat it
	j.pass(time.Minute, item)
	want := []string{"Host web true " + id + ": is broken"}
	if !slices.Equal(j.events, want) {
		t.Fatalf("%q", j.events)
	}
	j.pass(findingEndsAfter - findingsInterval)
	j.pass(findingsInterval, item) // it is back before it has ended
	j.pass(findingEndsAfter)
	if !slices.Equal(j.events, want) {
		t.Fatalf("%q", j.events)
	}
	j.pass(time.Minute)
	want = append(want, fmt.Sprintf("Host web false %s: ended after %s: is broken", id, 3*time.Minute+10*time.Second))
	if !slices.Equal(j.events, want) || len(j.kept.starts) != 0 || len(j.absent) != 0 {
		t.Fatalf("%q, wanted %q; %v", j.events, want, j.kept.starts)
	}
}

func TestAnAdviceIsANormalEvent(t *testing.T) {
	j := newJournalTest()
	j.pass(findingsInterval, itemOf("web", findings.Advice, j.now))
	if len(j.events) != 1 || j.events[0] != "Host web false "+findings.Rules[0].ID+": is broken" {
		t.Errorf("%q", j.events)
	}
}

func TestManyFindingsMakeFewEventsAtATimeAndAllInTheEnd(t *testing.T) {
	j := newJournalTest()
	var items []findings.Item
	for i := range 1000 {
		items = append(items, itemOf(fmt.Sprintf("h-%04d", i), findings.Warning, j.now))
	}
	j.pass(findingsInterval, items...)
	if len(j.events) != findingEventBurst {
		t.Errorf("%d events at once", len(j.events))
	}
	j.pass(1000*findingEventEvery, items...)
	if len(j.events) != len(items) {
		t.Errorf("%d events of %d findings", len(j.events), len(items))
	}
}

func TestAStoreThatDoesNotAnswerDelaysARoundByOneCallOnly(t *testing.T) {
	j := newJournalTest()
	j.kept.err = errors.New("timeout")
	var items []findings.Item
	for i := range 50 {
		items = append(items, itemOf(fmt.Sprint(i), findings.Warning, j.now))
	}
	j.pass(findingsInterval, items...)
	if j.journal.events != findingEventBurst-1 || len(j.events) != 0 {
		t.Errorf("%v starts were tried, %d events", findingEventBurst-j.journal.events, len(j.events))
	}
	j.kept.err = nil
	j.pass(findingsInterval, items...)
	if len(j.events) != 50 {
		t.Errorf("%d events afterwards", len(j.events))
	}
}
