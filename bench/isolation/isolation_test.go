package main

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestCommandsCountForThePhaseInWhichTheyBegan(t *testing.T) {
	stalls := []sample{{1000 * ms, 1000 * ms}}
	var r record
	r.take([]sample{{-1 * ms, 9 * time.Second}, {0, ms}, {999 * ms, 2 * ms}, {1000 * ms, 30 * ms}, {1999 * ms, 40 * ms}, {2000 * ms, 9 * time.Second},
		{2499 * ms, 9 * time.Second}, {2500 * ms, 3 * ms}}, stalls, 3*time.Second)
	if want := (figures{3, 0.002, 0.003, 0.003}); r.Calm != want {
		t.Errorf("calm: %+v", r.Calm)
	}
	if want := (figures{2, 0.03, 0.04, 0.04}); r.Stalled != want {
		t.Errorf("stalled: %+v", r.Stalled)
	}
	if r.Ratio < 13.3 || r.Ratio > 13.4 {
		t.Errorf("ratio %v", r.Ratio)
	}
	if len(r.Stalls) != 1 || r.Stalls[0] != [2]float64{1, 2} {
		t.Errorf("stalls %v", r.Stalls)
	}
}

func TestBinsAreSortedAndThoseWithoutCommandsOrCutByTheEndAreMissing(t *testing.T) {
	var r record
	r.take([]sample{{450 * ms, 4 * ms}, {10 * ms, ms}, {99 * ms, 3 * ms}, {500 * ms, ms}}, nil, 599*ms)
	if len(r.Bins) != 2 || r.Bins[0].From != 0 || r.Bins[0].Count != 2 || r.Bins[0].Max != 0.003 || r.Bins[1].From != 0.4 {
		t.Errorf("%+v", r.Bins)
	}
}

func TestQuantilesAreThoseOfTheNearestRank(t *testing.T) {
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(100-i)*ms)
	}
	if got, want := figuresOf(values), (figures{100, 0.05, 0.099, 0.1}); got != want {
		t.Errorf("%+v", got)
	}
}
