package simtest_test

import (
	"flag"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/controlplane/internal/simtest"
)

var (
	seed = flag.Uint64("seed", 0, "run this seed alone; 0: -runs of them, from 1")
	runs = flag.Uint64("runs", 2000, "how many seeds to run")
)

const steps = 1500

// known seeds have once found a violation. Most lie beyond those that run each time.
var known = []uint64{1561, 2292, 4262, 7535, 15754, 18237}

// run is a whole run: faults, and the recovery after them. It ends at the first violation.
func run(seed uint64, broken simtest.Rule, steps int) []string {
	w := simtest.New(seed, broken)
	for range steps {
		if w.Step(); len(w.Violations()) > 0 {
			return w.Violations()
		}
	}
	w.Recover()
	w.CheckRest()
	if len(w.Violations()) == 0 {
		w.LoseAllButOne()
	}
	return w.Violations()
}

func TestAtMostOneGatewayServesUnderFaultsAndOneServesInTheEnd(t *testing.T) {
	last := *runs
	if testing.Short() {
		last = 200
	}
	seeds := []uint64{*seed}
	if *seed == 0 {
		seeds = slices.Clone(known)
		for s := uint64(1); s <= last; s++ {
			seeds = append(seeds, s)
		}
	}
	// A run has no goroutines, and runs share no mutable state, so as many run at a time as there are processors.
	work := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for s := range work {
				if found := run(s, simtest.Whole, steps); len(found) > 0 {
					t.Errorf("seed %d (again with -seed %d): %v", s, s, found)
				}
			}
		})
	}
	for _, s := range seeds {
		if t.Failed() {
			break
		}
		work <- s
	}
	close(work)
	workers.Wait()
}

// Each rule is needed: without it, some seed finds the violation that the rule prevents.
func TestEachRuleThatIsBrokenIsFoundOut(t *testing.T) {
	for name, broken := range map[string]struct {
		rule  simtest.Rule
		steps int
		// from is the seed that found it last, at which the search begins. A change of the simulation may require another one,
		// which the test logs (-v). Enter it here, because a search takes minutes.
		from  uint64
		found []string // one of them
	}{
		"compare-and-swap":            {simtest.NoCompareAndSwap, 3 * steps, 46, []string{"falls from", "own ", "was lost", "did not have the lock"}},
		"the lock before the epoch":   {simtest.NoLock, steps, 2, []string{"did not have the lock"}},
		"the incarnation of a report": {simtest.NoIncarnation, steps, 1, []string{"finds no owner"}},
		"the order of a report":       {simtest.NoOrder, steps, 117, []string{"did not have the lock"}},
		"the epoch of a report":       {simtest.NoEpoch, 20 * steps, 98, []string{"taken for released", "own "}},
		"a release is final":          {simtest.ReleaseIsNotFinal, steps, 15, []string{"taken for released", "serves"}},
		"the peers' word":             {simtest.NoPeers, steps, 1, []string{"was given up"}},
		"the owner's snapshots":       {simtest.AnyoneSnapshots, 20 * steps, 2003, []string{"took a snapshot"}},
		"references":                  {simtest.NoReferences, steps, 1, []string{"while it is held by"}},
		"jobs hold what they are for": {simtest.NoJobGuard, 3 * steps, 405, []string{"left behind", "before its image"}},
		"a gateway's finalizer":       {simtest.NoFinalizer, steps, 16, []string{"while it owns", "while it exports"}},
		"a record as it was seen":     {simtest.NoRecordGuard, steps, 3157, []string{"is taken for", "may write"}},
		"a fence that is done":        {simtest.NoFence, steps, 2, []string{"is noted to be fenced"}},
		"a client that is recorded":   {simtest.NoRecord, steps, 139, []string{"is taken for", "may write"}},
		"the load before serving":     {simtest.NoLoad, 3 * steps, 1483, []string{"which is over", "may write"}},
		"clients that are known":      {simtest.UnknownIsFenced, steps, 4538, []string{"not known"}},
		"the marker of a pool":        {simtest.NoMarker, steps, 161, []string{"not the pool's", "no image of it", "left behind"}},
		"the record of an image":      {simtest.NoImageRecord, steps, 232, []string{"another image than its own"}},
		"the size of an image":        {simtest.NoImageSize, steps, 1, []string{"lost its end"}},
		"the system of a store":       {simtest.NoSystem, steps, 3, []string{"an empty store"}},
		"the copies of a record":      {simtest.NoRecordCopy, steps, 52, []string{"is recorded beside its data"}},
		"the key of a store":          {simtest.NoKeyCheck, steps, 1, []string{"could not decrypt"}},
		"who looks for the lost":      {simtest.PathSetsOnly, steps, 6, []string{"finds no owner, though"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for s := broken.from; s < broken.from+2000; s++ {
				for _, found := range run(s, broken.rule, broken.steps) {
					for _, words := range broken.found {
						if strings.Contains(found, words) {
							t.Logf("seed %d: %s", s, found)
							return
						}
					}
				}
			}
			t.Error("2000 seeds did not find it out")
		})
	}
}
