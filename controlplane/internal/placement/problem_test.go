package placement

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

var inconsistencies = []struct {
	claim  string
	change func(*Cluster)
	kind   model.Kind
	name   string
	reason string
	wrong  string
}{
	{"a gateway in a path set that doesn't exist", func(c *Cluster) {
		c.Targets[0].PathSet = []uint32{1, 99}
	}, model.KindTarget, "t-000", ReasonUnknownGateway, "gateway 99"},
	{"an owner that doesn't exist", func(c *Cluster) {
		c.Volumes[0].Owner = 99
	}, model.KindVolume, "v-000-0", ReasonUnknownGateway, "gateway 99"},
	{"a switch that doesn't exist", func(c *Cluster) {
		c.Gateways[0].Portals[0].Switch = "gone"
	}, model.KindGateway, "gateway-1", ReasonUnknownSwitch, "a/gone"},
	{"a host on a switch that doesn't exist", func(c *Cluster) {
		c.Hosts[0].Switches = []Attachment{{"a", "gone"}}
	}, model.KindHost, "h", ReasonUnknownSwitch, "a/gone"},
	{"a fabric that doesn't exist", func(c *Cluster) {
		c.Gateways[0].Portals[0].Fabric = "gone"
	}, model.KindGateway, "gateway-1", ReasonUnknownFabric, "gone"},
	{"a fabric in parts", func(c *Cluster) {
		c.Fabrics[0].Links = c.Fabrics[0].Links[1:]
	}, model.KindFabric, "a", ReasonDisconnected, "s-0 and s-1"},
	{"a link to nowhere", func(c *Cluster) {
		c.Fabrics[0].Links[0].A = "gone"
	}, model.KindFabric, "a", ReasonUnknownSwitch, "gone"},
	{"a link cost out of range", func(c *Cluster) {
		c.Fabrics[0].Links[0].Cost = -7
	}, model.KindFabric, "a", ReasonOutOfRange, "-7"},
	{"a weight of zero", func(c *Cluster) {
		c.Gateways[1].Weight = 0
	}, model.KindGateway, "gateway-2", ReasonOutOfRange, "weight is 0"},
	{"a pool of no gateways", func(c *Cluster) {
		c.Targets[0].GatewayPool = "empty"
	}, model.KindTarget, "t-000", ReasonUnknownPool, "empty"},
	{"a pool of too few gateways", func(c *Cluster) {
		c.Targets[0].Paths = 9
	}, model.KindTarget, "t-000", ReasonTooFewGateways, "9 paths"},
	{"a volume that doesn't exist", func(c *Cluster) {
		c.Targets[0].Volumes = []string{"gone"}
	}, model.KindTarget, "t-000", ReasonUnknownVolume, "gone"},
	{"a host that doesn't exist", func(c *Cluster) {
		c.Targets[0].Hosts = []string{"gone"}
	}, model.KindTarget, "t-000", ReasonUnknownHost, "gone"},
	{"a storage pool that doesn't exist", func(c *Cluster) {
		c.Volumes[0].PoolKind = UnknownPool
	}, model.KindVolume, "v-000-0", ReasonMissingPool, "storage pool"},
	{"a local pool's node without a gateway", func(c *Cluster) {
		c.Volumes[0].PoolKind, c.Volumes[0].Node = LocalPool, "elsewhere"
	}, model.KindTarget, "t-000", ReasonNoGatewayOnNode, "elsewhere"},
	{"a gateway without portals", func(c *Cluster) {
		c.Gateways[0].Portals = nil
	}, model.KindGateway, "gateway-1", ReasonNoPortals, "no portals"},
	{"a gateway that is given twice", func(c *Cluster) {
		c.Gateways = append(c.Gateways, c.Gateways[0])
	}, model.KindGateway, "gateway-1", ReasonDuplicate, "twice"},
	{"a host that reaches nothing", func(c *Cluster) {
		c.Fabrics = append(c.Fabrics, row("c", 1))
		c.Hosts[0].Switches = []Attachment{{"c", "s-0"}}
	}, model.KindTarget, "t-000", ReasonUnreachable, "1 of its hosts"},
}

func TestInconsistentInputIsReportedWithObjectFaultAndCure(t *testing.T) {
	for _, test := range inconsistencies {
		t.Run(test.claim, func(t *testing.T) {
			c := plainCluster(3, 1, 1)
			test.change(&c)
			problems := Plan(c).Problems
			for _, p := range problems {
				if p.Kind == test.kind && p.Name == test.name && p.Reason == test.reason &&
					strings.Contains(p.Wrong, test.wrong) && p.Mend != "" {
					return
				}
			}
			t.Errorf("want %s %s: %s … %q, got %v", test.kind, test.name, test.reason, test.wrong, problems)
		})
	}
}

func TestAConsistentClusterHasNoProblems(t *testing.T) {
	if problems := Plan(plainCluster(4, 10, 3)).Problems; len(problems) > 0 {
		t.Errorf("got %v", problems)
	}
}

func TestAnEmptyClusterGivesAnEmptyPlan(t *testing.T) {
	a := Plan(Cluster{})
	if len(a.Targets)+len(a.Volumes)+len(a.Moves)+len(a.Access)+len(a.Problems) > 0 {
		t.Errorf("got %+v", a)
	}
}
