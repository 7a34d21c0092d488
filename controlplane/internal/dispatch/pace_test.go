package dispatch

import (
	"testing"
	"time"
)

// rests returns the rests of successive updates, each sent as soon as allowed.
func rests(p *pace, from time.Time, count int, took time.Duration, objects, sent int) (all []time.Duration) {
	for range count {
		from = from.Add(took)
		rest := p.pauseAfter(from, took, objects, sent)
		all = append(all, rest)
		from = from.Add(rest)
	}
	return all
}

func TestTheFewUpdatesOfAMoveDoNotWaitForEachOther(t *testing.T) {
	for i, rest := range rests(&pace{}, noon, 5, 100*time.Microsecond, 20_000, 1) {
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
		{100 * time.Microsecond, 20_000, 32 * time.Millisecond},
		{2 * time.Millisecond, 20, 16 * time.Millisecond},
		{100 * time.Microsecond, 100_000, 50 * time.Millisecond},
		{10 * time.Millisecond, 20, 50 * time.Millisecond},
		{time.Second, 20, 3 * time.Second},
	} {
		for _, sent := range []int{1, few + 1} {
			all := rests(&pace{}, noon, 400, c.took, c.objects, sent)
			if last := all[len(all)-1]; last < c.want*4/5 || last > c.want*6/5 {
				t.Errorf("%s with %d objects, %d sent: %s in the end, want about %s", c.took, c.objects, sent, last, c.want)
			}
		}
	}
}

func TestALargeUpdateRestsAtOnce(t *testing.T) {
	if rest := (&pace{}).pauseAfter(noon, 0, 20_000, few+1); rest != 32*time.Millisecond {
		t.Errorf("%s", rest)
	}
}

func TestThePauseAfterExpensiveUpdatesExpires(t *testing.T) {
	p := &pace{}
	rests(p, noon, 100, 0, 20_000, 1)
	if rest := p.pauseAfter(noon.Add(time.Minute), 0, 20_000, 1); rest > 0 {
		t.Errorf("a minute later: %s", rest)
	}
}
