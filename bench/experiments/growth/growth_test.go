package main

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/cluster"
)

func TestLUNsBeyondTheFirstTargetAreInOthersNoneOfThemOverfull(t *testing.T) {
	text := moreTargets(lunsPerTarget*2 + 3)
	if n := strings.Count(text, "kind: Target"); n != 2 {
		t.Errorf("%d targets", n)
	}
	if n := strings.Count(text, "kind: Volume"); n != lunsPerTarget+3 {
		t.Errorf("%d volumes", n)
	}
	for _, want := range []string{"{id: 0, volume: vol-1024}", "{id: 1023, volume: vol-2047}", "{id: 2, volume: vol-2050}]"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestOnlyLUNsOfTheFirstTargetAreReadAndTheFirstAlways(t *testing.T) {
	luns := lunsIn(map[string]cluster.Ownership{"vol-7": {}, "vol-0": {}, "vol-1024": {}, "other": {}})
	if slices.Sort(luns); !slices.Equal(luns, []uint16{0, 7}) {
		t.Error(luns)
	}
}

func TestMoreLUNsAreNotMoreMemoryToReadFrom(t *testing.T) {
	for luns, want := range map[int]int{1: span, 4: span / 4, 3: 5591040, 4096: size, 9999: size} {
		if got := areaOfLUN(luns); got != want || got%size != 0 {
			t.Errorf("%d LUNs: %d bytes each, not %d", luns, got, want)
		}
	}
}
