package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
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
			_ = netns.Wait(ctx, calm/40)
		}
	}()
	if err := p.untilCalm(ctx, began, calm); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
}

func TestARecordHasTheKeysThatTheReportReads(t *testing.T) {
	r := record{Kind: nodeLoss, LUNs: 1000, Struck: 9, Stalls: []float64{0.1}, Gap: 0.1, Longest: 0.2, All: 0.3, Beyond: 0.4, Takeovers: []float64{0.5},
		CPU: map[string]float64{"cp-1": 0.6}, Calm: map[string]float64{"cp-1": 0.7}, Errors: 1, Retries: 2}
	line, err := json.Marshal(r)
	want := `{"kind":"node loss","luns":1000,"struck":9,"stallsSeconds":[0.1],"gapSeconds":0.1,"longestSeconds":0.2,"allSeconds":0.3,` +
		`"beyondDetectionSeconds":0.4,"takeoversSeconds":[0.5],"cpuSeconds":{"cp-1":0.6},"calmCPUSeconds":{"cp-1":0.7},"errors":1,"retries":2}`
	if err != nil || string(line) != want {
		t.Errorf("%v: %s", err, line)
	}
	path := filepath.Join(t.TempDir(), "records.jsonl")
	if err := os.WriteFile(path, append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if read, err := readRecords(path); err != nil || !reflect.DeepEqual(read, []record{r}) {
		t.Errorf("%v: %+v", err, read)
	}
	if err := os.WriteFile(path, append(line, "\n{"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readRecords(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a broken second line: %v", err)
	}
}

func TestUsageSinceAFaultIsOfProcessesThatRanThroughout(t *testing.T) {
	now := usage{"cp-1": 5 * time.Second, "gw-2": 3 * time.Second, hostName: time.Second}
	took := now.since(usage{"cp-1": 4 * time.Second, "gw-1": time.Second, "gw-2": 2 * time.Second, hostName: time.Second})
	if len(took) != 3 || took["cp-1"] != 1 || took["gw-2"] != 1 || took[hostName] != 0 {
		t.Errorf("%v: who was killed, or was not there before, is in it", took)
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
	if _, err := processorTime(1 << 23); err == nil { // greater than any pid
		t.Error("a process that is not there has taken some")
	}
}
