package api

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/controlplane/internal/findings"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
)

// An election takes some seconds, and is no fault.
func TestAnAbsentLeaderIsAFindingOnlyAfterAnElectionWouldBeOver(t *testing.T) {
	without := true
	f := NewFindings(nil, nil, func(context.Context) findings.System { return findings.System{NoLeader: without} }, prometheus.NewRegistry())
	now := time.Now()
	for _, step := range []struct {
		after        time.Duration
		absent, want bool
	}{{0, true, false}, {leaderlessLimit, true, false}, {leaderlessLimit + 1, true, true}, {time.Hour, false, false}, {2 * time.Hour, true, false}} {
		without = step.absent
		f.refresh(t.Context(), now.Add(step.after))
		if f.facts.NoLeader != step.want {
			t.Errorf("after %s: %v", step.after, f.facts.NoLeader)
		}
	}
}

func TestTheMetricHasEveryFindingAndReturnsToZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := NewFindings(nil, nil, nil, registry)
	rule := findings.Rules[0]
	lower := findings.Item{Rule: rule, Severity: findings.Advice}
	for _, c := range []struct {
		items []findings.Item
		sum   float64
	}{{[]findings.Item{lower, lower, {Rule: rule, Severity: rule.Severity}}, 3}, {nil, 0}} {
		f.count(c.items)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatal(families, err)
		}
		sum := 0.0
		for _, metric := range families[0].GetMetric() {
			sum += metric.GetGauge().GetValue()
		}
		// One series for each rule, and the one of the lower severity, which stays.
		if count := len(families[0].GetMetric()); sum != c.sum || count != len(findings.Rules)+1 {
			t.Errorf("%d series with %v objects, wanted %v", count, sum, c.sum)
		}
	}
}

// oneReplica returns the start of the finding OneReplica, which has no condition.
func oneReplica(t *testing.T, f *Findings, now time.Time) time.Time {
	t.Helper()
	items := f.items(now)
	if len(items) != 1 || items[0].Rule.ID != "OneReplica" {
		t.Fatalf("%+v", items)
	}
	return items[0].Since
}

func TestTheStartOfAFindingIsTheStoredOneAtEveryReplica(t *testing.T) {
	facts := func(context.Context) findings.System { return findings.System{EmbeddedStore: true} }
	f := NewFindings(nil, view.New(nil, slog.New(slog.DiscardHandler)), facts, prometheus.NewRegistry())
	now := time.Now()
	f.refresh(t.Context(), now)
	if since := oneReplica(t, f, now); !since.Equal(now) {
		t.Errorf("first %s", since)
	}
	if since := oneReplica(t, f, now.Add(time.Minute)); !since.Equal(now) {
		t.Errorf("then %s", since)
	}
	stored := model.FindingStart{ID: "OneReplica", Object: findings.KindControlPlane, Since: now.Add(-time.Hour)}
	_ = f.starts.apply(store.RecordChange[model.FindingStart]{Type: store.Put, Record: stored})
	if since := oneReplica(t, f, now.Add(2*time.Minute)); !since.Equal(stored.Since) {
		t.Errorf("with a stored start %s", since)
	}
}

func TestFollowedRecordsAreThoseOfTheStoreAfterAReset(t *testing.T) {
	f := newFollowed(func(text string) string { return text })
	for _, c := range []store.RecordChange[string]{{Type: store.Reset}, {Type: store.Put, Record: "a"}, {Type: store.Put, Record: "b"}} {
		_ = f.apply(c)
	}
	if f.complete() {
		t.Error("complete before its bookmark")
	}
	for _, c := range []store.RecordChange[string]{{Type: store.Bookmark}, {Type: store.Deleted, Record: "a"}, {Type: store.Put, Record: "c"},
		{Type: store.Reset}, {Type: store.Put, Record: "c"}, {Type: store.Bookmark}} {
		_ = f.apply(c)
	}
	if all := f.all(); !f.complete() || len(all) != 1 || all[0] != "c" {
		t.Errorf("%v", all)
	}
}
