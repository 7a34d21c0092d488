package main

import (
	"math"

	"sluice.dev/sluice/controlplane/internal/placement"
)

// comparison compares the hops of plans with the least possible ones.
type comparison struct {
	Clusters int `json:"clusters"`
	// Ratios of a plan's sum of hops to the least sum with no greater maximum of load.
	WorstRatio float64   `json:"worstRatio"`
	MeanRatio  float64   `json:"meanRatio"`
	Ratios     []float64 `json:"ratios"`
}

// compare plans clusters of five gateways in three racks, and six targets of one volume each, for which all assignments of owners
// can be tried.
func compare(seed uint64) *comparison {
	small := size{Gateways: 5, Racks: 3, Spines: 2, Targets: 6, VolumesPerTarget: 1, Hosts: 8}
	result := &comparison{Clusters: 200}
	for i := range result.Clusters {
		c := newCluster(small, seed<<20+uint64(i))
		a := placement.Plan(c)
		d := newDirectory(&c, &a)
		owners := make([]int, len(c.Volumes))
		for v := range c.Volumes {
			owners[v] = int(d.owners[c.Volumes[v].Name]) - 1
		}
		limit := greatest(&c, owners)
		ratio := hops(&c, d, owners) / least(&c, d, limit)
		result.Ratios = append(result.Ratios, ratio)
		result.WorstRatio = max(result.WorstRatio, ratio)
		result.MeanRatio += ratio / float64(result.Clusters)
	}
	return result
}

func greatest(c *placement.Cluster, owners []int) float64 {
	loads := make([]float64, len(c.Gateways))
	for v, g := range owners {
		loads[g] += float64(c.Volumes[v].Load+placement.DefaultVolumeLoad) / float64(c.Gateways[g].Weight)
	}
	worst := 0.0
	for _, load := range loads {
		worst = max(worst, load)
	}
	return worst
}

func hops(c *placement.Cluster, d *directory, owners []int) float64 {
	sum := 0.0
	for v, g := range owners {
		for _, name := range c.Targets[v].Hosts {
			sum += switches(d.hosts[name], &c.Gateways[g])
		}
	}
	return max(sum, 1)
}

// least tries all assignments whose greatest load is within a limit.
func least(c *placement.Cluster, d *directory, limit float64) float64 {
	owners := make([]int, len(c.Volumes))
	best := math.Inf(1)
	for {
		if allowed(c, owners) && greatest(c, owners) <= limit+1e-9 {
			best = min(best, hops(c, d, owners))
		}
		at := 0
		for at < len(owners) && owners[at] == len(c.Gateways)-1 {
			owners[at] = 0
			at++
		}
		if at == len(owners) {
			return best
		}
		owners[at]++
	}
}

// allowed reports whether local volumes are owned on their nodes.
func allowed(c *placement.Cluster, owners []int) bool {
	for v, g := range owners {
		if c.Volumes[v].PoolKind == placement.LocalPool && c.Volumes[v].Node != c.Gateways[g].Node {
			return false
		}
	}
	return true
}
