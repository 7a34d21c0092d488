// Command placement turns the records of a placement simulation into a report: Markdown, a plot,
// and the records beside them. `make bench-placement` runs both.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// record is a step of the simulation, as controlplane/internal/placement/simulate writes it.
type record struct {
	Step string `json:"step"`
	Size struct {
		Gateways         int `json:"gateways"`
		Racks            int `json:"racks"`
		Spines           int `json:"spines"`
		Targets          int `json:"targets"`
		VolumesPerTarget int `json:"volumesPerTarget"`
		Hosts            int `json:"hosts"`
	} `json:"size"`
	Seed              uint64    `json:"seed"`
	Seconds           float64   `json:"seconds"`
	Plans             int       `json:"plans"`
	PathMoves         int       `json:"pathMoves"`
	OwnerMoves        int       `json:"ownerMoves"`
	Forced            int       `json:"forced"`
	Rebalancing       int       `json:"rebalancing"`
	PathFairShare     int       `json:"pathFairShare"`
	OwnerFairShare    int       `json:"ownerFairShare"`
	OwnerMaxOverMean  float64   `json:"ownerMaxOverMean"`
	OwnerMinOverMean  float64   `json:"ownerMinOverMean"`
	PathMaxOverMean   float64   `json:"pathMaxOverMean"`
	OwnerHops         float64   `json:"ownerHops"`
	RandomHops        float64   `json:"randomHops"`
	NearestHops       float64   `json:"nearestHops"`
	RedundantPermille int       `json:"redundantPermille"`
	Problems          int       `json:"problems"`
	OwnerLoads        []float64 `json:"ownerLoads,omitempty"`
	Clusters          int       `json:"clusters,omitempty"`
	WorstRatio        float64   `json:"worstRatio,omitempty"`
	MeanRatio         float64   `json:"meanRatio,omitempty"`
	Ratios            []float64 `json:"ratios,omitempty"`
}

func main() {
	from := flag.String("records", "", "JSON lines that the simulation wrote")
	out := flag.String("out", "bench/reports", "directory of the report")
	flag.Parse()
	if err := run(*from, *out); err != nil {
		fmt.Fprintln(os.Stderr, "placement:", err)
		os.Exit(1)
	}
}

func run(from, out string) error {
	records, err := read(from)
	if err != nil {
		return err
	}
	base := filepath.Join(out, time.Now().UTC().Format(time.DateOnly)+"-placement")
	if err := writePlot(records, base+".svg"); err != nil {
		return err
	}
	text := report(records, filepath.Base(base)+".svg", filepath.Base(base)+".jsonl")
	if err := os.WriteFile(base+".md", []byte(text), 0o644); err != nil {
		return err
	}
	if err := keep(records, base+".jsonl"); err != nil {
		return err
	}
	fmt.Print(text)
	return nil
}

func read(path string) ([]record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	var records []record
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
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

// keep writes the records without the loads of single gateways, which the plot shows.
func keep(records []record, path string) error {
	var text []byte
	for _, r := range records {
		r.OwnerLoads, r.Ratios = nil, nil
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	return os.WriteFile(path, text, 0o644)
}
