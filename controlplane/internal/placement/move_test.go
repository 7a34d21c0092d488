package placement

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// settled returns a cluster in which everything is placed and nothing moves.
func settled(t *testing.T, c Cluster) Cluster {
	t.Helper()
	for range 50 {
		a := Plan(c)
		c = applied(c, a)
		orphaned := slices.ContainsFunc(a.Volumes, func(v VolumeOwner) bool { return v.Owner == 0 })
		if len(a.Moves) == 0 && !orphaned {
			return c
		}
	}
	t.Fatal("it never settles")
	return c
}

func withHealth(c Cluster, number uint32, health Health) Cluster {
	c.Gateways = slices.Clone(c.Gateways)
	c.Gateways[number-1].Health = health
	return c
}

func causesOf(a Assignment) map[Cause]int {
	count := map[Cause]int{}
	for _, m := range a.Moves {
		count[m.Cause]++
	}
	return count
}

func TestALeavingGatewayMovesWhatItHadAndLittleElse(t *testing.T) {
	for _, health := range []Health{Dead, Draining} {
		c := settled(t, plainCluster(20, 200, 4))
		had := 0
		for _, v := range c.Volumes {
			if v.Owner == 7 {
				had++
			}
		}
		for _, target := range c.Targets {
			if slices.Contains(target.PathSet, 7) {
				had++
			}
		}
		a := Plan(withHealth(c, 7, health))
		forced, others := 0, 0
		for _, m := range a.Moves {
			if m.From == 7 {
				forced++
			} else {
				others++
			}
		}
		if forced != had || others > had/4 {
			t.Errorf("gateway 7 had %d; it moved %d and others %d", had, forced, others)
		}
		for _, target := range a.Targets {
			if slices.Contains(target.Gateways, 7) || len(target.Gateways) != 2 || !target.Redundant {
				t.Errorf("%s is left with %v", target.Target, target.Gateways)
			}
		}
	}
}

func TestJoiningGatewaysTakeAboutTheirFairShareOnly(t *testing.T) {
	c := plainCluster(20, 200, 4)
	all := slices.Clone(c.Gateways)
	c.Gateways = all[:18]
	c = settled(t, c)
	c.Gateways = all
	c.Policy.MaxMoves = 1 << 30
	a := Plan(c)
	paths, volumes, joined := 0, 0, 0
	for _, m := range a.Moves {
		if m.Volume == "" {
			paths++
		} else {
			volumes++
		}
		if m.To > 18 {
			joined++
		}
	}
	// Two of twenty gateways: a tenth of 400 paths and of 800 volumes.
	if paths > 50 || volumes > 100 || paths < 28 || volumes < 56 {
		t.Errorf("%d paths and %d volumes moved, the fair shares are 40 and 80", paths, volumes)
	}
	if joined*10 < 9*(paths+volumes) {
		t.Errorf("only %d of %d moves were to the joining gateways", joined, paths+volumes)
	}
}

func TestRebalancingMovesAreBoundedAndTheBestComeFirst(t *testing.T) {
	c := plainCluster(20, 200, 4)
	all := slices.Clone(c.Gateways)
	c.Gateways = all[:10]
	c = settled(t, c)
	c.Gateways = all
	c.Policy.MaxMoves = 12
	a := Plan(c)
	if len(a.Moves) == 0 || len(a.Moves) > 12 {
		t.Errorf("%d moves, want 1 to 12", len(a.Moves))
	}
	for i := 1; i < len(a.Moves); i++ {
		if a.Moves[i].Gain > a.Moves[i-1].Gain {
			t.Errorf("move %d gains more than the one before: %+v", i, a.Moves)
		}
	}
	c.Policy.MaxMoves = -1
	if a := Plan(c); len(a.Moves) > 0 {
		t.Errorf("no moves are wanted, and %d are planned", len(a.Moves))
	}
}

func TestPathsThatOneFailureTakesMoveAsSoonAsTheyNeedNot(t *testing.T) {
	c := plainCluster(4, 1, 1)
	c.Gateways[1].Node = c.Gateways[0].Node
	c.Targets[0].PathSet, c.Volumes[0].Owner = []uint32{1, 2}, 1
	a := Plan(c)
	if !a.Targets[0].Redundant || len(a.Moves) == 0 || a.Moves[0].Cause != CauseRedundancy {
		t.Errorf("both paths were on one node: got %+v, moves %+v", a.Targets[0], a.Moves)
	}
	c.Gateways = c.Gateways[:2]
	want := []FailureDomain{{DomainNode, "node-1", 1}}
	if got := Plan(c).Targets[0]; got.Redundant || !slices.Equal(got.Single, want) {
		t.Errorf("with gateways on one node only: got %+v, want %+v left", got, want)
	}
}

func TestForcedMovesComeBeforeRebalancing(t *testing.T) {
	c := plainCluster(20, 100, 4)
	all := slices.Clone(c.Gateways)
	c.Gateways = all[:10]
	c = settled(t, c)
	c.Gateways = all
	c.Policy.MaxMoves = 20
	a := Plan(withHealth(c, 3, Dead))
	count := causesOf(a)
	if count[CauseDead] == 0 || count[CauseRebalance] == 0 {
		t.Fatalf("moves by cause are %v, want both", count)
	}
	for i, m := range a.Moves[:count[CauseDead]] {
		if m.Cause != CauseDead {
			t.Errorf("move %d is %+v, before all that is forced", i, m)
		}
	}
}

func TestAGainBelowTheHysteresisMovesNothing(t *testing.T) {
	c := settled(t, plainCluster(4, 100, 1))
	for _, owner := range []struct {
		load  uint64
		moves bool
	}{{105, false}, {400, true}} {
		for i := range c.Volumes {
			c.Volumes[i].Load = 100
			if c.Volumes[i].Owner == 2 {
				c.Volumes[i].Load = owner.load
			}
		}
		if a := Plan(c); (len(a.Moves) > 0) != owner.moves {
			t.Errorf("gateway 2's volumes have a load of %d, others of 100: moves %+v", owner.load, a.Moves)
		}
	}
}

func TestACordonedGatewayKeepsWhatItHasAndTakesNothing(t *testing.T) {
	c := withHealth(settled(t, plainCluster(4, 40, 2)), 2, Cordoned)
	if a := Plan(c); len(a.Moves) > 0 {
		t.Errorf("cordoning moved %+v", a.Moves)
	}
	for _, extra := range plainCluster(4, 80, 2).Targets[40:] {
		c.Targets = append(c.Targets, extra)
		for _, v := range extra.Volumes {
			c.Volumes = append(c.Volumes, Volume{Name: v, PoolKind: RBDPool})
		}
	}
	a := Plan(c)
	for i := 40; i < 80; i++ {
		if slices.Contains(a.Targets[i].Gateways, 2) {
			t.Errorf("%s was given to a cordoned gateway", a.Targets[i].Target)
		}
	}
}

func TestADrainThatNoGatewayCanTakeOverIsBlockedAndReported(t *testing.T) {
	c := withHealth(settled(t, plainCluster(2, 3, 2)), 1, Draining)
	a := Plan(c)
	for _, target := range a.Targets {
		if !slices.Equal(target.Gateways, []uint32{1, 2}) {
			t.Errorf("%s is left with %v, fewer paths than promised", target.Target, target.Gateways)
		}
	}
	for _, v := range a.Volumes {
		if v.Owner != 2 {
			t.Errorf("%s is owned by %d though gateway 2 could", v.Volume, v.Owner)
		}
	}
	if !reports(a, ReasonDrainBlocked) {
		t.Error("the blocked drain is not reported")
	}
}

func TestTheRemedyOfABlockedDrainNamesANodeOnlyIfVolumesNeedIt(t *testing.T) {
	c := plainCluster(2, 1, 2)
	c.Volumes[0].PoolKind, c.Volumes[0].Node = LocalPool, "node-1"
	c = applied(c, Plan(c))
	for gateway, want := range map[uint32]string{1: `on node "node-1"`, 2: "or lower spec.paths"} {
		problems := Plan(withHealth(c, gateway, Draining)).Problems
		if i := slices.IndexFunc(problems, func(p Problem) bool { return p.Reason == ReasonDrainBlocked }); i < 0 ||
			!strings.HasSuffix(problems[i].Mend, want) {
			t.Errorf("gateway %d drains, and the remedy does not end with %q: %+v", gateway, want, problems)
		}
	}
}

func TestADeadGatewayWithoutReplacementKeepsItsPlaceAndOwnsNothing(t *testing.T) {
	c := withHealth(settled(t, plainCluster(2, 3, 2)), 1, Dead)
	a := Plan(c)
	for _, target := range a.Targets {
		if len(target.Gateways) != 2 || target.Serving != 1 || target.Redundant {
			t.Errorf("got %+v, want both gateways, one of them serving", target)
		}
	}
	for _, v := range a.Volumes {
		if v.Owner != 2 {
			t.Errorf("%s is owned by %d", v.Volume, v.Owner)
		}
	}
	back := Plan(withHealth(applied(c, a), 1, Usable))
	for _, m := range back.Moves {
		if m.Target != "" {
			t.Errorf("its return moved a path: %+v", m)
		}
	}
}

func TestVolumesOfADeadNodesLocalPoolHaveNoOwner(t *testing.T) {
	c := plainCluster(4, 1, 1)
	c.Volumes[0].PoolKind, c.Volumes[0].Node = LocalPool, "node-3"
	c = applied(c, Plan(c))
	if c.Volumes[0].Owner != 3 || !slices.Contains(c.Targets[0].PathSet, 3) {
		t.Fatalf("path set %v, owner %d, want gateway 3 of the volume's node",
			c.Targets[0].PathSet, c.Volumes[0].Owner)
	}
	a := Plan(withHealth(c, 3, Dead))
	if a.Volumes[0].Owner != 0 || !reports(a, ReasonNoOwner) {
		t.Errorf("owner %d, problems %v", a.Volumes[0].Owner, a.Problems)
	}
}

func TestLosingOneGatewayNeverOverloadsAnother(t *testing.T) {
	c := settled(t, plainCluster(20, 200, 4))
	loads := map[uint32]float64{}
	for _, v := range Plan(withHealth(c, 7, Dead)).Volumes {
		loads[v.Owner]++
	}
	for g, load := range loads {
		if fair := 800.0 / 19; load > math.Ceil(1.25*fair) {
			t.Errorf("gateway %d owns %v volumes, the fair share is %.1f", g, load, fair)
		}
	}
}
