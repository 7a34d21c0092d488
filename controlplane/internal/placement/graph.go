package placement

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/controlplane/internal/model"
)

const (
	// unknown is the index of an unknown switch.
	unknown int32 = -1
	// apart is the distance of switches that are not connected.
	apart int32 = -1
)

type edge struct{ to, cost, link int32 }

// graph has a fabric's switches and links by index, with precomputed results that Plan needs.
type graph struct {
	name     string
	switches []string
	index    map[string]int32
	edges    [][]edge
	links    [][2]int32
	// dist is the matrix of distances, in link costs: at most 1000 switches, links of at most 1000 each.
	dist []int32
	// farthest is the greatest distance between connected switches.
	farthest int32
	// cutSwitches and bridges are the switches and links whose failure divides the graph.
	cutSwitches []cut
	bridges     []cut
}

// cut is a switch or link whose failure separates switches.
type cut struct {
	// id is the index of the switch or link.
	id int32
	// part of each switch after the failure; switches in different parts are separated. -1: the failed switch itself.
	part []int32
}

func newGraph(fabric Fabric, problems *problems) *graph {
	g := &graph{name: fabric.Name, index: map[string]int32{}}
	names := slices.Compact(slices.Sorted(slices.Values(fabric.Switches)))
	if len(names) > model.MaxSwitches || len(fabric.Links) > model.MaxLinks {
		problems.add(model.KindFabric, fabric.Name, ReasonOutOfRange,
			fmt.Sprintf("it has %d switches and %d links, which are more than %d and %d",
				len(names), len(fabric.Links), model.MaxSwitches, model.MaxLinks),
			"the rest is left out: divide the fabric")
		names = names[:min(len(names), model.MaxSwitches)]
	}
	g.switches = names
	for i, name := range names {
		g.index[name] = int32(i)
	}
	g.edges = make([][]edge, len(names))
	for _, link := range sortedLinks(fabric.Links) {
		g.addLink(link, problems)
	}
	g.measure()
	g.findCuts()
	g.reportParts(problems)
	return g
}

func sortedLinks(links []Link) []Link {
	sorted := slices.Clone(links)
	for i, link := range sorted {
		if link.A > link.B {
			sorted[i].A, sorted[i].B = link.B, link.A
		}
	}
	slices.SortFunc(sorted, compareLinks)
	return sorted[:min(len(sorted), model.MaxLinks)]
}

func (g *graph) addLink(link Link, problems *problems) {
	a, knownA := g.index[link.A]
	b, knownB := g.index[link.B]
	if !knownA || !knownB || a == b {
		problems.add(model.KindFabric, g.name, ReasonUnknownSwitch,
			fmt.Sprintf("a link joins %q and %q, which are not two of its switches", link.A, link.B),
			"the link is left out: correct spec.links or spec.switches")
		return
	}
	cost := min(max(link.Cost, 1), model.MaxLinkCost)
	if cost != link.Cost {
		problems.add(model.KindFabric, g.name, ReasonOutOfRange,
			fmt.Sprintf("the link of %s and %s costs %d; 1 to %d are possible",
				link.A, link.B, link.Cost, model.MaxLinkCost),
			fmt.Sprintf("it counts as %d: correct spec.links", cost))
	}
	id := int32(len(g.links))
	g.links = append(g.links, [2]int32{a, b})
	g.edges[a] = append(g.edges[a], edge{b, cost, id})
	g.edges[b] = append(g.edges[b], edge{a, cost, id})
}

// switchIndex returns the index of a switch. In a fabric of one switch, an empty name means that switch.
func (g *graph) switchIndex(name string) (index int32, known bool) {
	if name == "" {
		if len(g.switches) == 1 {
			return 0, true
		}
		return unknown, true
	}
	if at, ok := g.index[name]; ok {
		return at, true
	}
	return unknown, false
}

// distance in link costs; 0 if a place is unknown, because it may be adjacent.
func (g *graph) distance(a, b int32) int32 {
	if a == unknown || b == unknown {
		return 0
	}
	return g.dist[int(a)*len(g.switches)+int(b)]
}

// measure runs Dijkstra's algorithm from every switch.
func (g *graph) measure() {
	n := len(g.switches)
	g.dist = make([]int32, n*n)
	queue := make([]reached, 0, n)
	for from := range g.switches {
		row := g.dist[from*n : (from+1)*n]
		for i := range row {
			row[i] = apart
		}
		row[from] = 0
		queue = push(queue[:0], reached{0, int32(from)})
		for len(queue) > 0 {
			var at reached
			at, queue = pop(queue)
			if at.dist > row[at.node] {
				continue
			}
			for _, e := range g.edges[at.node] {
				next := at.dist + e.cost
				if row[e.to] == apart || next < row[e.to] {
					row[e.to] = next
					queue = push(queue, reached{next, e.to})
				}
			}
		}
		g.farthest = max(g.farthest, slices.Max(row))
	}
}

// reached is an entry of the binary heap, nearest first.
type reached struct{ dist, node int32 }

func push(heap []reached, entry reached) []reached {
	heap = append(heap, entry)
	for i := len(heap) - 1; i > 0; {
		up := (i - 1) / 2
		if heap[up].dist <= heap[i].dist {
			break
		}
		heap[up], heap[i] = heap[i], heap[up]
		i = up
	}
	return heap
}

func pop(heap []reached) (reached, []reached) {
	top, last := heap[0], len(heap)-1
	heap[0] = heap[last]
	heap = heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if heap[child].dist < heap[least].dist {
				least = child
			}
		}
		if least == i {
			return top, heap
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// parts numbers the connected parts without a switch and a link (-1: none is removed). It returns the links through which
// switches were first reached: only these can be bridges.
func (g *graph) parts(withoutSwitch, withoutLink int32) (part []int32, count int32, tree []int32) {
	part = make([]int32, len(g.switches))
	for i := range part {
		part[i] = -1
	}
	var stack []int32
	for start := range part {
		if part[start] != -1 || int32(start) == withoutSwitch {
			continue
		}
		part[start] = count
		stack = append(stack[:0], int32(start))
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, e := range g.edges[at] {
				if e.to == withoutSwitch || e.link == withoutLink || part[e.to] != -1 {
					continue
				}
				part[e.to] = count
				tree = append(tree, e.link)
				stack = append(stack, e.to)
			}
		}
		count++
	}
	return part, count, tree
}

func (g *graph) findCuts() {
	_, whole, tree := g.parts(-1, -1)
	for i := range g.switches {
		if part, count, _ := g.parts(int32(i), -1); count > whole {
			g.cutSwitches = append(g.cutSwitches, cut{int32(i), part})
		}
	}
	slices.Sort(tree)
	for _, link := range tree {
		if part, count, _ := g.parts(-1, link); count > whole {
			g.bridges = append(g.bridges, cut{link, part})
		}
	}
}

func (g *graph) reportParts(problems *problems) {
	part, count, _ := g.parts(-1, -1)
	if count < 2 {
		return
	}
	other := slices.Index(part, 1)
	problems.add(model.KindFabric, g.name, ReasonDisconnected,
		fmt.Sprintf("no links join %s and %s: it is in %d parts",
			g.switches[0], g.switches[other], count),
		"add the missing links to spec.links, or make a fabric of each part")
}

func (g *graph) switchName(i int32) string { return g.name + "/" + g.switches[i] }

func (g *graph) linkName(i int32) string {
	return g.name + "/" + g.switches[g.links[i][0]] + "-" + g.switches[g.links[i][1]]
}
