package api

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/controlplane/internal/findings"
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
