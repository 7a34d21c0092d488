package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/world"
)

func TestTheStallIsTheLongestGapThatEndsAfterTheFault(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	p := &probe{acknowledged: []acknowledged{{at(-900), time.Millisecond}, {at(-100), 800 * time.Millisecond}, {at(-10), time.Millisecond},
		{at(290), 250 * time.Millisecond}, {at(300), 310 * time.Millisecond}, {at(310), time.Millisecond}}}
	if gap, ended, longest := p.stall(began); gap != 300*time.Millisecond || ended != at(290) || longest != 310*time.Millisecond {
		t.Errorf("%v, %v, %v", gap, ended.Sub(began), longest)
	}
}

func TestOnlyLUNsThatWereStruckCountAndAllGoOnWithTheLast(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	gap := func(lun uint16, until int) *probe {
		return &probe{lun: lun, errors: 1, acknowledged: []acknowledged{{at(0), time.Millisecond}, {at(until), time.Millisecond}}}
	}
	probes := []*probe{gap(0, 100), gap(2, 300), gap(4, 900)}
	struck := map[string]cluster.Ownership{"vol-0": {}, "vol-1": {}, "vol-2": {}}
	r := summary(kill, 5, began, at(200), struck, probes)
	if !slices.Equal(r.Stalls, []float64{0.1, 0.3}) || r.Gap != 0.3 || r.All != 0.3 || r.Struck != 3 || r.Errors != 3 {
		t.Errorf("%+v", r)
	}
	if r := summary(kill, 5, began, at(700), struck, probes); r.All != 0.7 {
		t.Errorf("the control plane was the last, and all go on after %v", r.All)
	}
}

func TestTheSampleIsSpreadOverAllLUNs(t *testing.T) {
	for luns, want := range map[int][]uint16{1: {0}, 3: {0, 1, 2}, 1000: {0, 125, 250, 375, 500, 625, 750, 875}} {
		if got := sample(luns, 8); !slices.Equal(got, want) {
			t.Errorf("%d: %v", luns, got)
		}
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
			_ = world.Wait(ctx, calm/40)
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

func stalled(kind string, luns int, stalls ...float64) record {
	r := record{Kind: kind, LUNs: luns, Struck: 9, Stalls: stalls, Gap: slices.Max(stalls), All: slices.Max(stalls)}
	if kind == nodeLoss {
		r.Beyond = r.Gap - silenceLimit.Seconds()
	}
	return r
}

func TestTheReportJudgesByTheAims(t *testing.T) {
	var lines bytes.Buffer
	for _, r := range []record{stalled(kill, 1, 0.2), stalled(kill, 1, 1.9), stalled(kill, 1, 0.3), stalled(kill, 1000, 2.1, 0.3),
		stalled(linuxKill, 1, 2.9), stalled(linuxKill, 1, 3.1),
		{Kind: move, LUNs: 1, Struck: 1, Stalls: []float64{0.1}, All: 0.2, Errors: 1}, stalled(nodeLoss, 1, 7), stalled(nodeLoss, 1000, 8)} {
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
		"| kill | 1 | 9 | 3 | 0.300 | 1.900 | 1.900 | 0.300 | 1.900 | 0.000 | 0.000 | 0 | 0 | median ≤ 0.5 s, p99 ≤ 2 s, no errors | yes |",
		"| kill | 1000 | 9 | 1 | 0.300 | 2.100 | 2.100 | 2.100 | 2.100 | 0.000 | 0.000 | 0 | 0 | median ≤ 0.5 s, p99 ≤ 2 s, no errors | **no** |",
		"| kill, a Linux host | 1 | 9 | 2 | 2.900 | 3.100 | 3.100 | 2.900 | 3.100 | 0.000 | 0.000 | 0 | 0 | all ≤ 3 s, no errors | **no** |",
		"| planned move | 1 | 1 | 1 | 0.100 | 0.100 | 0.100 | 0.200 | 0.200 | 0.000 | 0.000 | 1 | 0 | p99 ≤ 0.3 s, no errors | **no** |",
		"beyond the initiator's detection | yes |",
		"| kill | 1, 1000 | 0.300, 0.300 | 1.00× | 0.300, 2.100 | 7.00× | yes |",
		"| node loss | 1, 1000 | 7.000, 8.000 | 1.14× | 7.000, 8.000 | 1.14× | yes |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if drawn, err := os.ReadFile(base + ".svg"); err != nil || !bytes.Contains(drawn, []byte("1000 LUNs")) {
		t.Errorf("the plot: %v", err)
	}
}

func TestAFaultCostsWhatIsTakenBeyondCalm(t *testing.T) {
	now := usage{"cp-1": 5 * time.Second, "gw-2": 3 * time.Second, hostName: time.Second}
	took := now.since(usage{"cp-1": 4 * time.Second, "gw-1": time.Second, "gw-2": 2 * time.Second, hostName: time.Second})
	if len(took) != 3 || took["cp-1"] != 1 || took["gw-2"] != 1 || took[hostName] != 0 {
		t.Errorf("%v: who was killed, or was not there before, is in it", took)
	}
	r := record{Kind: kill, LUNs: 1000, Struck: 100, CPU: map[string]float64{"cp-1": 0.3, "gw-2": 0.1, "gw-3": 0.1},
		Calm: map[string]float64{"cp-1": 0.1, "gw-2": 0.05, "gw-3": 0.2}}
	if costs := r.costs(); math.Abs(costs["control plane"]-2) > 1e-9 || math.Abs(costs["gateways"]-0.5) > 1e-9 {
		t.Errorf("%v ms", costs)
	}
	if text := report([]record{r}, ""); !strings.Contains(text, "| kill | 1000 | 100 | 2.000 | 0.500 | 0.000 |") {
		t.Error(text)
	}
}

func TestTheProcessorTimeOfAProcessIsItsOwn(t *testing.T) {
	before, err := processorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1 << 20 {
		_ = fmt.Sprint(n)
	}
	after, err := processorTime(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("%v, then %v: %v", before, after, err)
	}
	if _, err := processorTime(1 << 23); err == nil { // pids end before
		t.Error("a process that is not there has taken some")
	}
}
