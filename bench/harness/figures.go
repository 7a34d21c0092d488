package harness

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// quiet is the largest share of a window in which a process may have waited for a core. Above it, other load on the machine
// dominates the measurement.
const quiet = 0.03

// Values returns a figure of all measurements so far with this subject and these parameters, in order.
func (b *Bench) Values(figure, subject string, wanted map[string]any) []float64 {
	return b.values(figure, subject, wanted, math.Inf(1))
}

// Quiet returns the values of the quiet rounds if there are at least two, else all.
func (b *Bench) Quiet(figure, subject string, wanted map[string]any) []float64 {
	if found := b.values(figure, subject, wanted, quiet); len(found) >= 2 {
		return found
	}
	return b.Values(figure, subject, wanted)
}

func (b *Bench) values(figure, subject string, wanted map[string]any, noise float64) []float64 {
	var found []float64
	for _, m := range b.measurements {
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

// Median of values; 0 if there are none.
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

// Ratios returns the ratios of values measured in the same rounds, in order; common factors of a round cancel.
func Ratios(ours, reference []float64) []float64 {
	var all []float64
	for i := range min(len(ours), len(reference)) {
		if reference[i] != 0 {
			all = append(all, ours[i]/reference[i])
		}
	}
	return all
}

// With returns parameters with additions.
func With(parameters, more map[string]any) map[string]any {
	all := maps.Clone(parameters)
	maps.Copy(all, more)
	return all
}
