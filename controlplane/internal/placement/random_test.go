package placement

import (
	"fmt"
	"math/rand/v2"
)

// sizes bound the objects of a random cluster.
type sizes struct {
	gateways, nodes, fabrics, switches, targets, volumes, hosts, paths int
	// oddness is the probability, in thousandths, that an object is inconsistent.
	oddness int
}

var (
	tiny   = sizes{6, 4, 2, 4, 3, 2, 3, 3, 0}
	medium = sizes{24, 16, 2, 12, 60, 4, 30, 3, 0}
	odd    = sizes{8, 4, 3, 5, 8, 3, 6, 4, 150}
)

type maker struct {
	*rand.Rand
	sizes
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// randomCluster returns the same cluster for the same seed.
func randomCluster(seed uint64, s sizes) Cluster {
	m := &maker{newRand(seed), s}
	var c Cluster
	for f := range 1 + m.IntN(s.fabrics) {
		c.Fabrics = append(c.Fabrics, m.fabric(f))
	}
	for i := range 1 + m.IntN(s.gateways) {
		c.Gateways = append(c.Gateways, m.gateway(i, c.Fabrics))
	}
	for i := range m.IntN(s.hosts + 1) {
		c.Hosts = append(c.Hosts, m.host(i, c.Fabrics))
	}
	for i := range 1 + m.IntN(s.targets) {
		m.target(&c, i)
	}
	return c
}

func (m *maker) isOdd() bool { return m.IntN(1000) < m.oddness }

func (m *maker) name(kind string, n int) string {
	if m.isOdd() {
		return []string{"", "missing", kind + "-0"}[m.IntN(3)]
	}
	return fmt.Sprintf("%s-%d", kind, n)
}

func (m *maker) fabric(i int) Fabric {
	f := Fabric{Name: m.name("fabric", i)}
	count := 1 + m.IntN(m.switches)
	for s := range count {
		f.Switches = append(f.Switches, m.name("switch", s))
	}
	// A tree, so that switches are mostly connected, and as many further links, which form rings.
	for s := 1; s < count; s++ {
		f.Links = append(f.Links, m.link(s, m.IntN(s)))
	}
	for range m.IntN(count + 1) {
		f.Links = append(f.Links, m.link(m.IntN(count), m.IntN(count)))
	}
	return f
}

func (m *maker) link(a, b int) Link {
	l := Link{A: m.name("switch", a), B: m.name("switch", b), Cost: int32(1 + m.IntN(3))}
	if m.isOdd() {
		l.Cost = []int32{-1, 0, 1 << 30, -1 << 31}[m.IntN(4)]
	}
	return l
}

func (m *maker) on(f Fabric) string {
	if m.isOdd() {
		return "elsewhere"
	}
	if m.IntN(8) == 0 {
		return ""
	}
	return f.Switches[m.IntN(len(f.Switches))]
}

func (m *maker) gateway(i int, fabrics []Fabric) Gateway {
	g := Gateway{
		Number: uint32(i + 1), Name: m.name("gateway", i), Pool: m.name("pool", m.IntN(8)/7),
		Node: fmt.Sprintf("node-%d", m.IntN(m.nodes)), Weight: int32(50 * (1 + m.IntN(3))),
		OtherLoad: uint64(m.IntN(200)),
	}
	if m.IntN(5) == 0 {
		g.Health = Health(m.IntN(4))
	}
	for _, f := range fabrics {
		if m.IntN(6) > 0 {
			g.Portals = append(g.Portals, Portal{
				Address: fmt.Sprintf("%s-%d:3260", f.Name, i), PortalGroupTag: uint32(len(g.Portals) + 1),
				Fabric: f.Name, Switch: m.on(f),
			})
		}
	}
	if m.isOdd() {
		g.Number, g.Weight, g.Health = uint32(m.IntN(4))<<m.IntN(31), -5, Health(m.IntN(9))
		g.OtherLoad = 1<<64 - 1
	}
	return g
}

func (m *maker) host(i int, fabrics []Fabric) Host {
	h := Host{Name: m.name("host", i)}
	for _, f := range fabrics {
		if m.IntN(4) > 0 {
			h.Switches = append(h.Switches, Attachment{f.Name, m.on(f)})
		}
	}
	return h
}

func (m *maker) target(c *Cluster, i int) {
	t := Target{
		Name: m.name("target", i), GatewayPool: m.name("pool", m.IntN(8)/7),
		Paths: int32(1 + m.IntN(m.paths)),
	}
	for range m.IntN(m.paths + 1) {
		t.PathSet = append(t.PathSet, uint32(1+m.IntN(len(c.Gateways))))
	}
	node := fmt.Sprintf("node-%d", m.IntN(m.nodes))
	kind := RBDPool
	if m.IntN(4) == 0 {
		kind = LocalPool
	}
	for v := range 1 + m.IntN(m.volumes) {
		volume := Volume{
			Name: m.name("volume", 100*i+v), PoolKind: kind, Node: node, Load: uint64(m.IntN(1000)),
		}
		if m.isOdd() {
			volume.Load, volume.PoolKind = 1<<64-1, PoolKind(m.IntN(5))
		}
		if len(t.PathSet) > 0 && m.IntN(4) > 0 {
			volume.Owner = t.PathSet[m.IntN(len(t.PathSet))]
		}
		c.Volumes = append(c.Volumes, volume)
		t.Volumes = append(t.Volumes, volume.Name)
	}
	if m.isOdd() {
		t.Paths, t.PathSet = int32(m.IntN(100)-50), append(t.PathSet, 9999)
		t.Volumes = append(t.Volumes, m.name("volume", m.IntN(100)))
	}
	for _, h := range c.Hosts {
		if m.IntN(len(c.Hosts)) < 2 {
			t.Hosts = append(t.Hosts, h.Name)
		}
	}
	c.Targets = append(c.Targets, t)
}

// shuffled returns the same cluster with every list in another order.
func shuffled(c Cluster, seed uint64) Cluster {
	r := rand.New(rand.NewPCG(seed, 2))
	c.Fabrics, c.Gateways = mixed(r, c.Fabrics), mixed(r, c.Gateways)
	c.Volumes, c.Targets, c.Hosts = mixed(r, c.Volumes), mixed(r, c.Targets), mixed(r, c.Hosts)
	for i := range c.Fabrics {
		c.Fabrics[i].Switches = mixed(r, c.Fabrics[i].Switches)
		c.Fabrics[i].Links = mixed(r, c.Fabrics[i].Links)
	}
	for i := range c.Gateways {
		c.Gateways[i].Portals = mixed(r, c.Gateways[i].Portals)
	}
	for i := range c.Targets {
		t := &c.Targets[i]
		t.PathSet, t.Volumes, t.Hosts = mixed(r, t.PathSet), mixed(r, t.Volumes), mixed(r, t.Hosts)
	}
	for i := range c.Hosts {
		c.Hosts[i].Switches = mixed(r, c.Hosts[i].Switches)
	}
	return c
}

func mixed[T any](r *rand.Rand, in []T) []T {
	out := append([]T(nil), in...)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// applied returns the cluster after a plan has been carried out.
func applied(c Cluster, a Assignment) Cluster {
	paths, owners := map[string][]uint32{}, map[string]uint32{}
	for _, t := range a.Targets {
		paths[t.Target] = t.Gateways
	}
	for _, v := range a.Volumes {
		owners[v.Volume] = v.Owner
	}
	c.Targets, c.Volumes = append([]Target(nil), c.Targets...), append([]Volume(nil), c.Volumes...)
	for i := range c.Targets {
		c.Targets[i].PathSet = paths[c.Targets[i].Name]
	}
	for i := range c.Volumes {
		c.Volumes[i].Owner = owners[c.Volumes[i].Name]
	}
	return c
}
