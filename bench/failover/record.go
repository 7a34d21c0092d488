package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Kinds of faults. tests/demo/cluster writes records of a further one: a kill as a Linux host with dm-multipath sees it.
const (
	kill     = "kill"
	move     = "planned move"
	nodeLoss = "node loss"
)

// record is one fault and what the host saw of it. bench/report/failover.py makes the report of the records.
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
	// All is the time from the fault until the control plane had reported a new owner for every LUN struck and I/O of the watched
	// ones went on, in seconds.
	All float64 `json:"allSeconds"`
	// Beyond is Gap less the initiator's own detection of a silent path; for node loss only.
	Beyond float64 `json:"beyondDetectionSeconds,omitempty"`
	// Takeovers are, for each LUN struck whose owner had to be shut out, the time from the beginning of that until the next
	// owner served it, in seconds, sorted: the part of a failover that storage takes.
	Takeovers []float64 `json:"takeoversSeconds,omitempty"`
	// CPU is the processor time that each process used from the fault until the control plane had reported the last new owner. Calm
	// is what it used undisturbed in as much time. Both are in seconds.
	CPU  map[string]float64 `json:"cpuSeconds,omitempty"`
	Calm map[string]float64 `json:"calmCPUSeconds,omitempty"`
	// Errors are operations that did not end well, Retries attempts besides the last ones.
	Errors  int `json:"errors"`
	Retries int `json:"retries"`
}

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
