package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Kinds of faults. tests/demo/cluster writes records of another one: a kill as seen by a Linux host with dm-multipath.
const (
	kill     = "kill"
	move     = "planned move"
	nodeLoss = "node loss"
)

// record is one fault and the host's measurements. bench/report/failover.py makes the report from the records.
type record struct {
	Kind string `json:"kind"`
	LUNs int    `json:"luns"`
	// Struck is the number of affected LUNs.
	Struck int `json:"struck"`
	// Stalls has, for each watched LUN of these, the longest time between two acknowledged operations around the fault; Gap is
	// the longest of them, and Longest the longest duration of one operation; all in seconds.
	Stalls  []float64 `json:"stallsSeconds"`
	Gap     float64   `json:"gapSeconds"`
	Longest float64   `json:"longestSeconds"`
	// All is the time from the fault until the control plane had reported a new owner for every affected LUN and I/O of the
	// watched ones continued, in seconds.
	All float64 `json:"allSeconds"`
	// Beyond is Gap without the initiator's own detection of a silent path, in seconds; only for node loss.
	Beyond float64 `json:"beyondDetectionSeconds,omitempty"`
	// Takeovers has, for each affected LUN whose owner had to be fenced, the time from the start of the fence until the next
	// owner served it, in seconds, sorted: the storage's part of a failover.
	Takeovers []float64 `json:"takeoversSeconds,omitempty"`
	// CPU is the processor time of each process from the fault until the control plane had reported the last new owner. Calm is
	// its time without a fault for the same duration. Both are in seconds.
	CPU  map[string]float64 `json:"cpuSeconds,omitempty"`
	Calm map[string]float64 `json:"calmCPUSeconds,omitempty"`
	// Errors is the number of failed operations, Retries the number of attempts except the last ones.
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
