// Command simulate plans seeded clusters and writes the results as JSON lines, one for each step. `make bench-placement` runs it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"sluice.dev/sluice/controlplane/internal/placement"
)

// record is one line of output.
type record struct {
	Step string `json:"step"`
	Size size   `json:"size,omitzero"`
	Seed uint64 `json:"seed,omitempty"`
	// Seconds that Plan took on one core; the mean of several plans.
	Seconds float64 `json:"seconds,omitempty"`
	Plans   int     `json:"plans,omitempty"`
	// Changes of what was present, by kind and cause.
	PathMoves      int `json:"pathMoves"`
	OwnerMoves     int `json:"ownerMoves"`
	Forced         int `json:"forced"`
	Rebalancing    int `json:"rebalancing"`
	PathFairShare  int `json:"pathFairShare,omitempty"`
	OwnerFairShare int `json:"ownerFairShare,omitempty"`
	*figures
	*comparison
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of the clusters")
	maxMoves := flag.Int("max-moves", 400, "rebalancing moves of one plan")
	shrink := flag.Int("shrink", 1, "divide all sizes by this")
	flag.Parse()
	s := full
	s.Gateways, s.Targets, s.Hosts = s.Gateways / *shrink, s.Targets / *shrink, s.Hosts / *shrink
	out := json.NewEncoder(os.Stdout)
	err := run(s, *seed, *maxMoves, func(r record) error {
		r.Seed, r.Size = *seed, s
		return out.Encode(r)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

func run(s size, seed uint64, maxMoves int, emit func(record) error) error {
	c := newCluster(s, seed)
	c.Policy.MaxMoves = maxMoves
	lost := max(1, s.Gateways/100)
	steps := []struct {
		name   string
		change func(placement.Cluster) placement.Cluster
		plans  int
	}{
		{"nothing placed yet", func(c placement.Cluster) placement.Cluster { return c }, 1},
		{"nothing changes", func(c placement.Cluster) placement.Cluster { return c }, 1},
		{"1 % of the gateways die", func(c placement.Cluster) placement.Cluster {
			return withHealth(c, 100%s.Gateways, lost, placement.Dead)
		}, 30},
		{"they return", func(c placement.Cluster) placement.Cluster {
			return withHealth(c, 100%s.Gateways, lost, placement.Usable)
		}, 30},
		{"1 % of the gateways drain", func(c placement.Cluster) placement.Cluster {
			return withHealth(c, 200%s.Gateways, lost, placement.Draining)
		}, 30},
	}
	for _, step := range steps {
		var r record
		c, r = settle(step.change(c), step.plans)
		r.Step = step.name
		r.PathFairShare = 2 * s.Targets * lost / s.Gateways
		r.OwnerFairShare = s.Targets * s.VolumesPerTarget * lost / s.Gateways
		if err := emit(r); err != nil {
			return err
		}
	}
	return emit(record{Step: "small clusters against the optimum", comparison: compare(seed)})
}

// settle plans and applies until nothing moves, at most the given number of times.
func settle(c placement.Cluster, plans int) (placement.Cluster, record) {
	var r record
	for range plans {
		start := time.Now()
		a := placement.Plan(c)
		r.Seconds += time.Since(start).Seconds()
		r.Plans++
		count(a.Moves, &r)
		c = apply(c, a)
		f := measure(&c, &a)
		r.figures = &f
		if len(a.Moves) == 0 {
			break
		}
	}
	r.Seconds /= float64(r.Plans)
	return c, r
}

func count(moves []placement.Move, r *record) {
	for _, m := range moves {
		if m.Volume == "" {
			r.PathMoves++
		} else {
			r.OwnerMoves++
		}
		if m.Cause == placement.CauseRebalance || m.Cause == placement.CauseRedundancy {
			r.Rebalancing++
		} else {
			r.Forced++
		}
	}
}
