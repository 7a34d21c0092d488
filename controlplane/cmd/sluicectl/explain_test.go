package main

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

// working makes the gateways, the pool, the volume and the target usable.
func (l *live) working() {
	l.t.Helper()
	l.prerequisites()
	l.shop()
	ready := func(conditions *[]model.Condition) {
		model.SetCondition(conditions, model.Condition{Type: model.ConditionReady, Status: model.ConditionTrue, Reason: "Ready"}, time.Now())
	}
	for _, name := range []string{"gw-1", "gw-2"} {
		modify(l, name, func(g *model.Gateway) { g.Status.Health = model.GatewayReady; ready(&g.Status.Conditions) })
	}
	modify(l, "nvme", func(p *model.StoragePool) { ready(&p.Status.Conditions) })
	modify(l, "orders", func(v *model.Volume) {
		v.Status.CapacityBytes = v.Spec.SizeBytes
		v.Status.Ownership = model.Ownership{State: model.Owned, Epoch: 1, Owner: model.GatewayRef{Number: 1}}
		ready(&v.Status.Conditions)
	})
	modify(l, "shop", func(t *model.Target) { t.Status.PathSet = []uint32{1, 2}; ready(&t.Status.Conditions) })
}

func TestExplainFindsThatEveryLinkFromAHostToItsDiskHolds(t *testing.T) {
	l := start(t)
	l.working()
	for _, object := range []string{"host web", "target shop", "volume orders", "gateway gw-1"} {
		out := l.must(append([]string{"explain"}, strings.Fields(object)...)...)
		if strings.Contains(out, "BROKEN") || !strings.HasSuffix(out, "every link holds\n") || !strings.Contains(out, "pool nvme is reached") {
			t.Errorf("%s:\n%s", object, out)
		}
	}
}

// Such a gateway continues to serve its hosts (DESIGN R3).
func TestAGatewayWithoutAStreamBreaksNoLinkAndIsShownAsAWarning(t *testing.T) {
	l := start(t)
	l.working()
	for _, name := range []string{"gw-1", "gw-2"} {
		modify(l, name, func(g *model.Gateway) { g.Status.Health = model.GatewayDisconnected })
	}
	out := l.must("explain", "host", "web")
	if !strings.HasSuffix(out, "every link holds\n") || !strings.Contains(out, "warning GatewayDisconnected: gateway gw-1") {
		t.Errorf("%s", out)
	}
}

func TestExplainShowsTheFirstBrokenLinkWithCauseAndRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		object, broken string
		damage         func(*live)
	}{
		"a volume without an owner": {"volume orders", "VolumeWithoutOwner: volume orders: has no owner", func(l *live) {
			modify(l, "orders", func(v *model.Volume) { v.Status.Ownership = model.Ownership{State: model.Orphaned, Epoch: 1} })
		}},
		"the volume of a host": {"host web", "VolumeDataUnusable: volume orders: its data is not usable (MediumFailed): deleted", func(l *live) {
			modify(l, "orders", func(v *model.Volume) {
				v.Status.Conditions = []model.Condition{
					{Type: model.ConditionReady, Status: model.ConditionFalse, Reason: "MediumFailed"},
					{Type: model.ConditionDegraded, Status: model.ConditionTrue, Reason: "MediumFailed", Message: "deleted"}}
			})
		}},
		"a pool that is not reached": {"target shop", "PoolUnreachable: pool nvme: is not reachable: I/O error", func(l *live) {
			modify(l, "nvme", func(p *model.StoragePool) {
				p.Status.Conditions = []model.Condition{{Type: model.ConditionReady, Status: model.ConditionFalse, Reason: "Problem", Message: "I/O error"}}
			})
		}},
		"no gateway is ready": {"host web", "none of gw-1, gw-2 serves", func(l *live) {
			for _, name := range []string{"gw-1", "gw-2"} {
				modify(l, name, func(g *model.Gateway) { g.Status.Health = model.GatewayDead })
			}
		}},
		"a host that is not logged in": {"volume orders", "it is not logged in", func(l *live) {
			l.must("host", "create", "other", "--initiator", "iqn.2026-11.org.example:other", "--allow-unauthenticated")
			modify(l, "shop", func(t *model.Target) { t.Spec.Hosts = append(t.Spec.Hosts, "other") })
		}},
		"a host that no target permits": {"host other", "no target permits it", func(l *live) {
			l.must("host", "create", "other", "--initiator", "iqn.2026-11.org.example:other", "--allow-unauthenticated")
		}},
		"a volume that no target maps": {"volume spare", "its data has not been made", func(l *live) {
			l.must("volume", "create", "spare", "--pool", "nvme", "--size", "1Gi")
		}},
		"a gateway": {"gateway gw-2", "its health is Dead", func(l *live) {
			modify(l, "gw-2", func(g *model.Gateway) { g.Status.Health = model.GatewayDead })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t)
			l.working()
			c.damage(l)
			out, err := l.run(append([]string{"explain"}, strings.Fields(c.object)...)...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if exitCode(err) != exitNotNow || strings.Count(out, "BROKEN") != 1 || len(lines) < 2 || !strings.Contains(out, c.broken) ||
				!strings.HasPrefix(lines[len(lines)-2], "BROKEN") || !strings.Contains(lines[len(lines)-1], "remedy: ") {
				t.Errorf("exit code %d:\n%s", exitCode(err), out)
			}
		})
	}
}

func TestExplainRefusesWhatHasNoWayToADisk(t *testing.T) {
	l := start(t)
	for arguments, code := range map[string]int{"fabric red": exitUsage, "nothing x": exitUsage, "volume none": exitNotFound} {
		if _, err := l.run(append([]string{"explain"}, strings.Fields(arguments)...)...); exitCode(err) != code {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}
