package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// randomGraph is sparse: it has parts, bridges and cut switches.
func randomGraph(seed uint64) (Fabric, *graph) {
	m := &maker{rand.New(rand.NewPCG(seed, 3)), sizes{switches: 9}}
	f := m.fabric(0)
	for len(f.Links) > 0 && m.IntN(2) == 0 {
		f.Links = f.Links[1:]
	}
	var p problems
	return f, newGraph(f, &p)
}

// floyd gives all distances by Floyd and Warshall's algorithm, without one switch and one link.
func floyd(g *graph, withoutSwitch, withoutLink int) [][]int32 {
	const far = 1 << 20
	n := len(g.switches)
	d := make([][]int32, n)
	for i := range d {
		d[i] = make([]int32, n)
		for j := range d[i] {
			d[i][j] = far
		}
		d[i][i] = 0
	}
	for a, edges := range g.edges {
		for _, e := range edges {
			if a != withoutSwitch && int(e.to) != withoutSwitch && int(e.link) != withoutLink {
				d[a][e.to] = min(d[a][e.to], e.cost)
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				d[i][j] = min(d[i][j], d[i][k]+d[k][j])
			}
		}
	}
	for i := range d {
		for j := range d[i] {
			if d[i][j] >= far {
				d[i][j] = apart
			}
		}
	}
	return d
}

func TestDistancesAreTheShortestOnEveryGraph(t *testing.T) {
	for seed := range uint64(200) {
		_, g := randomGraph(seed)
		want := floyd(g, -1, -1)
		for a := range want {
			for b := range want {
				if got := g.distance(int32(a), int32(b)); got != want[a][b] {
					t.Fatalf("seed %d: %d to %d is %d, want %d", seed, a, b, got, want[a][b])
				}
			}
		}
	}
}

func TestCutsAreExactlyTheSwitchesAndLinksThatSeparate(t *testing.T) {
	for seed := range uint64(200) {
		_, g := randomGraph(seed)
		whole := floyd(g, -1, -1)
		check := func(cuts []cut, count int, without func(int) [][]int32, kind string) {
			for id := range count {
				left := without(id)
				for a := range left {
					for b := range left {
						if kind == "switch" && (a == id || b == id) {
							continue
						}
						want := whole[a][b] != apart && left[a][b] == apart
						got := false
						for _, c := range cuts {
							got = got || int(c.id) == id && whole[a][b] != apart && c.part[a] != c.part[b]
						}
						if got != want {
							t.Fatalf("seed %d: %s %d separates %d and %d: %v, want %v", seed, kind, id, a, b, got, want)
						}
					}
				}
			}
		}
		check(g.cutSwitches, len(g.switches), func(i int) [][]int32 { return floyd(g, i, -1) }, "switch")
		check(g.bridges, len(g.links), func(i int) [][]int32 { return floyd(g, -1, i) }, "link")
	}
}

func TestGreatLinkCostsDoNotOverflow(t *testing.T) {
	f := Fabric{Name: "f"}
	for i := range 1000 {
		f.Switches = append(f.Switches, fmt.Sprintf("s-%03d", i))
		if i > 0 {
			f.Links = append(f.Links, Link{f.Switches[i-1], f.Switches[i], 1<<31 - 1})
		}
	}
	var p problems
	if g := newGraph(f, &p); g.farthest != 999*1000 {
		t.Errorf("a chain of 1000 switches is %d long, want 999 links of 1000", g.farthest)
	}
}
