package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sluice.dev/sluice/tests/netns"
)

// fault is a fault and its end.
type fault struct {
	name string
	// on is the affected object: two faults on the same object do not overlap.
	on string
	// kind groups faults for the report.
	kind string
	// weight is the relative frequency with which it is chosen.
	weight int
	// shortest and longest duration; both 0: it has no duration.
	shortest, longest time.Duration
	// alone: no other fault overlaps it.
	alone bool
	do    func(ctx context.Context) error
	undo  func(ctx context.Context) error
}

// planned is a fault with its time.
type planned struct {
	at, lasts time.Duration
	fault     *fault
}

func (p planned) String() string {
	return fmt.Sprintf("%8.3f s  %s for %.3f s", p.at.Seconds(), p.fault.name, p.lasts.Seconds())
}

const (
	calmFirst  = time.Second // before the first fault
	gapLongest = 1500 * time.Millisecond
	overlaps   = 0.4 // share of faults that begin during the previous one
)

// plan chooses faults for a run. It depends only on seed, duration and faults.
func plan(seed uint64, duration time.Duration, faults []*fault) []planned {
	random := rand.New(rand.NewPCG(seed, 0xfa017))
	var bag []*fault
	for _, f := range faults {
		for range f.weight {
			bag = append(bag, f)
		}
	}
	var all []planned
	busy := map[string]time.Duration{}
	var left []*fault
	for at := calmFirst; len(bag) > 0; {
		if len(left) == 0 { // all faults are used before any repeats
			left = slices.Clone(bag)
			random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}
		f := left[0]
		left = left[1:]
		at += time.Duration(random.Float64() * float64(gapLongest))
		at = max(at, busy[f.on])
		for _, until := range busy {
			if f.alone {
				at = max(at, until)
			}
		}
		lasts := time.Duration(0)
		if f.longest > 0 { // short and long durations are equally frequent
			ratio := float64(f.longest) / float64(f.shortest)
			lasts = time.Duration(float64(f.shortest) * math.Pow(ratio, random.Float64())).Round(time.Millisecond)
		}
		if at+lasts > duration {
			break
		}
		all = append(all, planned{at, lasts, f})
		busy[f.on] = at + lasts + gapLongest/3
		if random.Float64() >= overlaps || f.alone {
			at += lasts
		}
	}
	return all
}

// play executes the faults at their times, and always undoes them.
func play(ctx context.Context, all []planned, note func(format string, arguments ...any)) error {
	began := time.Now()
	type step struct {
		at    time.Duration
		begin bool
		of    int
	}
	var steps []step
	for i, p := range all {
		steps = append(steps, step{p.at, true, i}, step{p.at + p.lasts, false, i})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	var failed []error
	under := map[int]bool{}
	for _, s := range steps {
		if err := netns.Wait(ctx, time.Until(began.Add(s.at))); err != nil {
			failed = append(failed, err)
			break
		}
		f := all[s.of].fault
		if !s.begin {
			delete(under, s.of)
			failed = append(failed, end(f, note))
			continue
		}
		note("%s for %.3f s", f.name, all[s.of].lasts.Seconds())
		under[s.of] = true
		if err := f.do(ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", f.name, err))
		}
	}
	for i := range under { // the run ended early
		failed = append(failed, end(all[i].fault, note))
	}
	return errors.Join(failed...)
}

func end(f *fault, note func(format string, arguments ...any)) error {
	if f.undo == nil {
		return nil
	}
	note("end of: %s", f.name)
	ctx, cancel := context.WithTimeout(context.Background(), undoTimeout)
	defer cancel()
	if err := f.undo(ctx); err != nil {
		return fmt.Errorf("end of %s: %w", f.name, err)
	}
	return nil
}

const undoTimeout = 20 * time.Second
