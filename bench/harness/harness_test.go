package harness

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMemoryIsReadAsTheKernelTellsIt(t *testing.T) {
	const text = "55d0c0000000-7ffd00000000 ---p 00000000 00:00 0  [rollup]\nRss:              5020 kB\nPss:              1000 kB\nPss_Shmem:  7 kB\n"
	found, err := parseRollup(text)
	if err != nil || found["Rss:"] != 5020<<10 || found["Pss:"] != 1000<<10 || found["Pss_Shmem:"] != 7<<10 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := parseRollup(""); err == nil {
		t.Error("a process that is gone has memory")
	}
}

func TestTimeOnACPUIsTheFirstFigureOfSchedstat(t *testing.T) {
	if spent, err := onCPU("1500000000 77 3\n"); err != nil || spent != 1500*time.Millisecond {
		t.Errorf("%v, %v", spent, err)
	}
	if _, err := onCPU(""); err == nil {
		t.Error("nothing is a time")
	}
}

func TestClientsTogetherShareTheCPUTimeThatEachOfThemSaw(t *testing.T) {
	one, other := Result{IOPS: 100, MBPerS: 10, TargetCPU: 0.5}, Result{IOPS: 300, MBPerS: 30, TargetCPU: 0.7}
	one.Latency.Mean, other.Latency.Mean, one.Latency.P99, other.Latency.P99 = 1000, 2000, 9000, 5000
	figures := Sum([]Result{one, other})
	for name, want := range map[string]float64{"iops": 400, "bytes_per_second": 40e6, "slowest_client_bytes_per_second": 10e6,
		"target_cpu_s_per_command": 0.6 / 400, "latency_mean_s": 0.00175, "latency_p99_s": 0.009} {
		if math.Abs(figures[name]-want) > want/1e9 {
			t.Errorf("%s is %g, not %g", name, figures[name], want)
		}
	}
	if _, has := Sum([]Result{{}})["latency_mean_s"]; has {
		t.Error("no command has a latency")
	}
}

func TestBoundsAreComparedAndInvalidBoundsAreRefused(t *testing.T) {
	for bound, want := range map[string]bool{">= 1.95": true, ">= 1.96": false, "<= 1.95": true, "<= 1.94": false} {
		if kept, err := holds(1.95, bound); err != nil || kept != want {
			t.Errorf("1.95 %s: %v, %v", bound, kept, err)
		}
	}
	for _, bad := range []string{"", "1.95", "about 2", ">= much"} {
		if _, err := holds(1, bad); err == nil {
			t.Errorf("%q is a bound", bad)
		}
	}
}

func TestMediansAndRatiosOfRounds(t *testing.T) {
	if m := Median([]float64{3, 1, 2}); m != 2 {
		t.Error(m)
	}
	if m := Median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Error(m)
	}
	if r := Ratios([]float64{2, 9, 4}, []float64{1, 0, 8, 7}); len(r) != 2 || r[0] != 2 || r[1] != 0.5 {
		t.Error(r)
	}
}

func TestNoisyRoundsCountOnlyWhereThereAreNotTwoQuietOnes(t *testing.T) {
	b := &Bench{}
	for i, noise := range []float64{0.01, 0.5, 0.02} {
		b.measurements = append(b.measurements, Measurement{Subject: "sluice", Figures: map[string]float64{"iops": float64(i), "noise_share": noise}})
	}
	if found := b.Quiet("iops", "sluice", nil); len(found) != 2 || found[1] != 2 {
		t.Error(found)
	}
	b.measurements = b.measurements[1:]
	if found := b.Quiet("iops", "sluice", nil); len(found) != 2 || found[0] != 1 {
		t.Error(found)
	}
}

func TestRecordsAreAppendedAndFoundAgainByTheirParameters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	b := &Bench{Name: "x", out: out}
	for i, way := range []string{"near", "far", "near"} {
		err := b.Record(Measurement{Subject: "sluice", Round: i, Parameters: map[string]any{"way": way, "size": 4096},
			Figures: map[string]float64{"iops": float64(i)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Aim("a figure", 2, ">= 1"); err != nil {
		t.Fatal(err)
	}
	if found := b.Values("iops", "sluice", map[string]any{"way": "near"}); len(found) != 2 || found[0] != 0 || found[1] != 2 {
		t.Error(found)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "before\n") || strings.Count(string(text), "\n") != 5 ||
		!strings.Contains(string(text), `"aim":"a figure","value":2,"bound":">= 1","kept":true`) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestOptionsThatCannotBeAreRefusedByName(t *testing.T) {
	if b, out, err := parse("x", []string{"--out", "f", "--full", "--rounds", "3"}); err != nil || out != "f" || b.Mode != Full || b.Rounds != 3 {
		t.Errorf("%+v, %v", b, err)
	}
	for want, arguments := range map[string][]string{"--out": {"--short"}, "exclude": {"--out", "f", "--short", "--full"},
		"--rounds": {"--out", "f", "--rounds", "-1"}, "no option": {"--out", "f", "more"}} {
		if _, _, err := parse("x", arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", arguments, err)
		}
	}
}
