package dispatch

import (
	"testing"
	"time"
)

// updates that end one after the other, each after a rest of its own, told as soon as they may be.
func rests(p *pace, from time.Time, count int, took time.Duration, objects int) (all []time.Duration) {
	for range count {
		from = from.Add(took)
		rest := p.rest(from, took, objects)
		all = append(all, rest)
		from = from.Add(rest)
	}
	return all
}

func TestTheFewUpdatesOfAMoveDoNotWaitForEachOther(t *testing.T) {
	for i, rest := range rests(&pace{}, noon, 5, 100*time.Microsecond, 1000) {
		if rest > time.Millisecond {
			t.Errorf("after update %d: %s", i, rest)
		}
	}
}

func TestTheManyUpdatesOfAFailoverRestInProportionToWhatTheyCost(t *testing.T) {
	for _, c := range []struct {
		took    time.Duration
		objects int
		want    time.Duration
	}{
		{100 * time.Microsecond, 1000, 8 * time.Millisecond},
		{2 * time.Millisecond, 1000, 14 * time.Millisecond},
		{100 * time.Microsecond, 100_000, 50 * time.Millisecond},
		{10 * time.Millisecond, 20, 50 * time.Millisecond},
		{time.Second, 20, 3 * time.Second},
	} {
		all := rests(&pace{}, noon, 40, c.took, c.objects)
		last := all[len(all)-1]
		if low, high := c.want*9/10, c.want*11/10; last < low || last > high {
			t.Errorf("%s with %d objects: %s in the end, want about %s", c.took, c.objects, last, c.want)
		}
	}
}

func TestWhatUpdatesCostIsForgottenInTime(t *testing.T) {
	p := &pace{}
	rests(p, noon, 100, 0, 1000)
	if rest := p.rest(noon.Add(time.Minute), 0, 1000); rest > 0 {
		t.Errorf("a minute later: %s", rest)
	}
}
