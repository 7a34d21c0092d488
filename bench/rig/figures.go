package rig

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// quiet is the most of a window that anybody may have waited for a core: above it, a measurement says more about neighbours.
const quiet = 0.03

// Values are a figure of all measurements so far whose subject and parameters hold what is wanted, in their order.
func (b *Bench) Values(figure, subject string, wanted map[string]any) []float64 {
	return b.values(figure, subject, wanted, math.Inf(1))
}

// Quiet are those of the quiet rounds if there are at least two of them, else all.
func (b *Bench) Quiet(figure, subject string, wanted map[string]any) []float64 {
	if found := b.values(figure, subject, wanted, quiet); len(found) >= 2 {
		return found
	}
	return b.Values(figure, subject, wanted)
}

func (b *Bench) values(figure, subject string, wanted map[string]any, noise float64) []float64 {
	var found []float64
	for _, m := range b.said {
		value, has := m.Figures[figure]
		if has && m.Subject == subject && matches(m.Parameters, wanted) && m.Figures["noise_share"] <= noise {
			found = append(found, value)
		}
	}
	return found
}

func matches(has, wanted map[string]any) bool {
	for key, value := range wanted {
		if fmt.Sprint(has[key]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

// Median of values; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratios of values measured in the same rounds, in order; what a round's measurements share cancels.
func Ratios(ours, reference []float64) []float64 {
	var all []float64
	for i := range min(len(ours), len(reference)) {
		if reference[i] != 0 {
			all = append(all, ours[i]/reference[i])
		}
	}
	return all
}

// With adds to parameters.
func With(parameters, more map[string]any) map[string]any {
	all := maps.Clone(parameters)
	maps.Copy(all, more)
	return all
}
