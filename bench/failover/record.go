package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Kinds of faults.
const (
	kill     = "kill"
	move     = "planned move"
	nodeLoss = "node loss"
	// linuxKill is a kill as a real Linux host with dm-multipath sees it; tests/demo/cluster writes such records.
	linuxKill = "kill, a Linux host"
)

var kinds = []string{kill, linuxKill, move, nodeLoss}

// record is one fault and what the host saw of it.
type record struct {
	Kind string `json:"kind"`
	LUNs int    `json:"luns"`
	// Struck is how many LUNs the fault concerned.
	Struck int `json:"struck"`
	// Stalls are, for each watched LUN of those, the longest time between two acknowledged operations around the fault;
	// Gap is the longest of them, Longest the longest time that one operation took; all in seconds.
	Stalls  []float64 `json:"stallsSeconds"`
	Gap     float64   `json:"gapSeconds"`
	Longest float64   `json:"longestSeconds"`
	// All is when, after the fault, the control plane had told of a new owner for every LUN struck and all watched ones
	// went on, in seconds.
	All float64 `json:"allSeconds"`
	// Beyond is Gap less the initiator's own detection of a silent path; for node loss only.
	Beyond float64 `json:"beyondDetectionSeconds,omitempty"`
	// Takeovers are, for each LUN struck whose owner had to be shut out, the time from the beginning of that until the next
	// owner served it, in seconds, sorted: the part of a failover that storage takes.
	Takeovers []float64 `json:"takeoversSeconds,omitempty"`
	// CPU is the processor time that each process took from the fault until the control plane had told of the last new owner, Calm
	// what it took undisturbed in as much time, in seconds.
	CPU  map[string]float64 `json:"cpuSeconds,omitempty"`
	Calm map[string]float64 `json:"calmCPUSeconds,omitempty"`
	// Errors are operations that did not end well, Retries attempts besides the last ones.
	Errors  int `json:"errors"`
	Retries int `json:"retries"`
}

func writeRecord(to io.Writer, r record) error { return json.NewEncoder(to).Encode(r) }

func readRecords(path string) ([]record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	var records []record
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(records)+1, err)
		}
		records = append(records, r)
	}
	if len(records) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("%s holds no records", path)
	}
	return records, lines.Err()
}

func numbers(text string) ([]int, error) {
	var all []int
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > 1024 {
			return nil, fmt.Errorf("-luns %q: %q is not a number from 1 to 1024", text, part)
		}
		all = append(all, n)
	}
	return all, nil
}

// quantile of sorted values by the nearest rank: the smallest that at least that share does not exceed.
func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// group is the records of one kind with one number of LUNs.
type group struct {
	kind            string
	luns            int
	times           int
	struck          int       // at most
	gaps            []float64 // of every fault and watched LUN; like the others sorted
	all, beyond     []float64 // of every fault
	takeovers       []float64 // of every fault and LUN struck
	longest         []float64
	costs           []map[string]float64 // of every fault, by part
	errors, retries int
}

func groups(records []record) []group {
	var all []group
	for _, kind := range kinds {
		byLUNs := map[int]*group{}
		var order []int
		for _, r := range records {
			if r.Kind != kind {
				continue
			}
			g := byLUNs[r.LUNs]
			if g == nil {
				g = &group{kind: kind, luns: r.LUNs}
				byLUNs[r.LUNs] = g
				order = append(order, r.LUNs)
			}
			g.times++
			g.struck = max(g.struck, r.Struck)
			g.gaps = append(g.gaps, r.Stalls...)
			g.all = append(g.all, r.All)
			g.takeovers = append(g.takeovers, r.Takeovers...)
			g.beyond = append(g.beyond, r.Beyond)
			g.longest = append(g.longest, r.Longest)
			if len(r.CPU) > 0 {
				g.costs = append(g.costs, r.costs())
			}
			g.errors += r.Errors
			g.retries += r.Retries
		}
		slices.Sort(order)
		for _, luns := range order {
			g := byLUNs[luns]
			for _, values := range [][]float64{g.gaps, g.all, g.beyond, g.longest, g.takeovers} {
				slices.Sort(values)
			}
			all = append(all, *g)
		}
	}
	return all
}
