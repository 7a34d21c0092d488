package placement

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestTheSameInputInAnyOrderGivesTheSamePlan(t *testing.T) {
	for seed := range uint64(300) {
		for _, s := range []sizes{tiny, odd} {
			c := randomCluster(seed, s)
			want := Plan(c)
			if got := Plan(shuffled(c, seed)); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: shuffled input gave another plan:\n%+v\n%+v", seed, got, want)
			}
		}
	}
	c := randomCluster(1, medium)
	if !reflect.DeepEqual(Plan(c), Plan(shuffled(c, 9))) {
		t.Error("a medium cluster's plan depends on the order of the input")
	}
}

func TestPlanDoesNotChangeItsInput(t *testing.T) {
	for seed := range uint64(200) {
		c := randomCluster(seed, odd)
		before, _ := json.Marshal(c)
		Plan(c)
		if after, _ := json.Marshal(c); string(after) != string(before) {
			t.Fatalf("seed %d: the input was changed", seed)
		}
	}
}

func TestAPlanThatWasAppliedIsFollowedByNoMoves(t *testing.T) {
	for seed := range uint64(400) {
		for _, s := range []sizes{tiny, medium, odd} {
			if s == medium && seed%10 != 0 {
				continue
			}
			c := randomCluster(seed, s)
			c.Policy.MaxMoves = 1 << 30
			first := Plan(c)
			if reports(first, ReasonDuplicate) {
				continue // which of two objects counts may change with their contents
			}
			next := Plan(applied(c, first))
			if len(next.Moves) > 0 {
				t.Fatalf("seed %d: planned again, it moves %+v", seed, next.Moves)
			}
			if !reflect.DeepEqual(next.Volumes, first.Volumes) {
				t.Fatalf("seed %d: planned again, owners differ", seed)
			}
			for i := range next.Targets {
				if !slices.Equal(next.Targets[i].Gateways, first.Targets[i].Gateways) {
					t.Fatalf("seed %d: planned again, path sets differ", seed)
				}
			}
		}
	}
}

func TestPlansOfFewMovesReachThePointWhereNothingMoves(t *testing.T) {
	for seed := range uint64(40) {
		c := randomCluster(seed, medium)
		c.Policy.MaxMoves = 3
		for plan := 0; ; plan++ {
			a := Plan(c)
			if len(a.Moves) == 0 {
				break
			}
			if plan == 200 {
				t.Fatalf("seed %d: after %d plans it still moves %+v", seed, plan, a.Moves)
			}
			c = applied(c, a)
		}
	}
}

func reports(a Assignment, reason string) bool {
	return slices.ContainsFunc(a.Problems, func(p Problem) bool { return p.Reason == reason })
}

// checkPlan asserts the properties of every plan, even for inconsistent input.
func checkPlan(t *testing.T, c Cluster, a Assignment) {
	t.Helper()
	gateways := map[uint32]Gateway{}
	for _, g := range c.Gateways {
		gateways[g.Number] = g
	}
	paths := map[string]TargetPaths{}
	for _, p := range a.Targets {
		paths[p.Target] = p
		distinct := slices.Compact(slices.Clone(p.Gateways))
		if !slices.IsSorted(p.Gateways) || len(distinct) != len(p.Gateways) {
			t.Errorf("%s: path set %v is not ascending and distinct", p.Target, p.Gateways)
		}
		for _, g := range p.Gateways {
			if _, known := gateways[g]; !known {
				t.Errorf("%s: gateway %d of the path set doesn't exist", p.Target, g)
			}
		}
		if p.Redundant == (len(p.Single) > 0) {
			t.Errorf("%s: redundant is %v, single failure domains are %v", p.Target, p.Redundant, p.Single)
		}
	}
	for _, access := range a.Access {
		var shown []uint32
		for _, r := range access.Portals {
			shown = append(shown, r.Gateway)
		}
		for _, g := range paths[access.Target].Gateways {
			if !slices.Contains(shown, g) && len(gateways[g].Portals) > 0 && !reports(a, ReasonDuplicate) {
				t.Errorf("%s isn't shown gateway %d of %s", access.Host, g, access.Target)
			}
		}
	}
	for _, problem := range a.Problems {
		if problem.Kind == "" || problem.Reason == "" || problem.Wrong == "" || problem.Mend == "" {
			t.Errorf("problem %+v doesn't name the object, what is wrong and the remedy", problem)
		}
	}
}

func TestTheInvariantsHoldForEveryInput(t *testing.T) {
	for seed := range uint64(1000) {
		c := randomCluster(seed, odd)
		checkPlan(t, c, Plan(c))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzPlanNeverPanics reads a cluster from JSON, so that the fuzzer reaches every field, or from a
// seed.
func FuzzPlanNeverPanics(f *testing.F) {
	for seed := range uint64(20) {
		text, err := json.Marshal(randomCluster(seed, odd))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, seed)
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		var c Cluster
		if json.Unmarshal(text, &c) != nil {
			c = randomCluster(seed, odd)
		}
		if seed%2 == 0 {
			c = shuffled(c, seed)
		}
		a := Plan(c)
		checkPlan(t, c, a)
		Plan(applied(c, a))
	})
}
