package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheStallIsTheLongestGapThatEndsAfterTheFault(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	p := &probe{acknowledged: []acknowledged{{at(-900), time.Millisecond}, {at(-100), 800 * time.Millisecond}, {at(-10), time.Millisecond},
		{at(290), 250 * time.Millisecond}, {at(300), 310 * time.Millisecond}, {at(310), time.Millisecond}}}
	if r := p.result(began); r.Gap != 0.3 || r.Longest != 0.31 {
		t.Errorf("%+v", r)
	}
}

func TestCalmIsNotWhileAnOperationIsMissing(t *testing.T) {
	const calm = 200 * time.Millisecond
	p := &probe{}
	ctx, cancel := context.WithCancel(context.Background())
	acknowledge := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.acknowledged = append(p.acknowledged, acknowledged{time.Now(), time.Millisecond})
	}
	began := time.Now()
	brief, stop := context.WithTimeout(ctx, 2*calm)
	defer stop()
	if p.untilCalm(brief, began, calm) == nil {
		t.Error("calm without a single operation")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			acknowledge()
			_ = pause(ctx, calm/40)
		}
	}()
	if err := p.untilCalm(ctx, began, calm); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
}

func TestQuantilesAreByNearestRank(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(i + 1)
	}
	for share, want := range map[float64]float64{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := quantile(values, share); got != want {
			t.Errorf("%v: %v, not %v", share, got, want)
		}
	}
}

func TestTheReportJudgesByTheAims(t *testing.T) {
	var lines bytes.Buffer
	for _, r := range []record{{Kind: kill, LUNs: 1, Gap: 0.2}, {Kind: kill, LUNs: 1, Gap: 1.9}, {Kind: kill, LUNs: 1, Gap: 0.3},
		{Kind: kill, LUNs: 1000, Gap: 2.1}, {Kind: move, LUNs: 1, Gap: 0.1, Errors: 1}, {Kind: nodeLoss, LUNs: 1, Gap: 7, Beyond: 2}} {
		if err := writeRecord(&lines, r); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "records.jsonl")
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := readRecords(path)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(t.TempDir(), "report")
	if err := writeReport(records, base); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(base + ".md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| kill | 1 | 3 | 0.300 | 1.900 | 1.900 | 0.000 | 0 | 0 | median ≤ 0.5 s, p99 ≤ 2 s, no errors | yes |",
		"| kill | 1000 | 1 | 2.100 | 2.100 | 2.100 | 0.000 | 0 | 0 | median ≤ 0.5 s, p99 ≤ 2 s, no errors | **no** |",
		"| planned move | 1 | 1 | 0.100 | 0.100 | 0.100 | 0.000 | 1 | 0 | p99 ≤ 0.3 s, no errors | **no** |",
		"beyond the initiator's detection | yes |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if drawn, err := os.ReadFile(base + ".svg"); err != nil || !bytes.Contains(drawn, []byte("1000 LUNs")) {
		t.Errorf("the plot: %v", err)
	}
}
