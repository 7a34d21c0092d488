package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

func record(f *fixture, log *store.EventLog, name, reason string) {
	f.t.Helper()
	if err := log.Record(f.t.Context(), model.Event{Object: model.KindVolume, Name: name, Reason: reason}); err != nil {
		f.t.Fatal(err)
	}
}

// listed returns the events as `name reason xcount`.
func listed(f *fixture) []string {
	f.t.Helper()
	events, _, err := f.Events(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprintf("%s %s x%d", e.Name, e.Reason, e.Count))
	}
	return all
}

func TestTheSameEventInARowIsCountedNotRepeated(t *testing.T) {
	f := open(t)
	log := store.NewEventLog(f.Store)
	for _, reason := range []string{"Moved", "Moved", "Orphaned", "Moved"} {
		record(f, log, "a", reason)
		f.clock.at = f.clock.at.Add(time.Minute)
	}
	record(f, log, "b", "Moved")
	want := fmt.Sprint([]string{"a Moved x2", "a Orphaned x1", "a Moved x1", "b Moved x1"})
	if got := fmt.Sprint(listed(f)); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEventsOfMoreThanAWeekAgoArePruned(t *testing.T) {
	f := open(t)
	log := store.NewEventLog(f.Store)
	record(f, log, "a", "Old")
	f.clock.at = f.clock.at.Add(store.EventAge - time.Hour)
	record(f, log, "a", "New")
	if err := f.PruneEvents(t.Context()); err != nil || len(listed(f)) != 2 {
		t.Fatalf("%v: %v are left, nothing was old enough", err, listed(f))
	}
	f.clock.at = f.clock.at.Add(2 * time.Hour)
	if err := f.PruneEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(listed(f)); got != "[a New x1]" {
		t.Errorf("%s are left", got)
	}
}

func TestTheMessageOfALongEventEndsWithAWholeCharacter(t *testing.T) {
	f := open(t)
	long := "x" + strings.Repeat("ä", 1024)
	err := store.NewEventLog(f.Store).Record(t.Context(), model.Event{Object: model.KindVolume, Name: "a", Reason: "Moved", Message: long})
	if err != nil {
		t.Fatal(err)
	}
	events, _, err := f.Events(t.Context())
	if err != nil || len(events) != 1 {
		t.Fatal(events, err)
	}
	if got := events[0].Message; got != long[:1023] {
		t.Errorf("the message has %d bytes and ends in %q", len(got), got[max(0, len(got)-4):])
	}
}
