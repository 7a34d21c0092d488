package main

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

func TestNodesAreListedWithTheirGatewaysAndPools(t *testing.T) {
	l := start(t)
	l.prerequisites()
	modify(l, "gw-1", func(g *model.Gateway) { g.Status.Health = model.GatewayReady })
	out := l.must("node", "list")
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if len(rows) != 3 || strings.Join(strings.Fields(rows[1]), " ") != "node-1 192.0.2.1 - 1/1 nvme" || strings.Join(strings.Fields(rows[2]), " ") != "node-2 192.0.2.2 - 0/1 -" {
		t.Errorf("the nodes are:\n%s", out)
	}
	if out := l.must("node", "list", "-o", "json"); !strings.Contains(out, `"gatewaysReady": 1`) {
		t.Errorf("as JSON:\n%s", out)
	}
}

func TestANodeWithVolumesOnItsLocalPoolsIsNeitherDrainedNorRemoved(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	for _, verb := range []string{"drain", "remove"} {
		_, err := l.run("node", verb, "node-1")
		if exitCode(err) != exitNotNow || !strings.Contains(err.Error(), "cannot leave it: orders") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if gateway, err := l.Gateways.Get(t.Context(), "gw-1"); err != nil || gateway.Status.Drain {
		t.Errorf("%+v, %v", gateway, err)
	}
}

func TestDrainingANodeWaitsUntilItsGatewaysAreDrained(t *testing.T) {
	l := start(t)
	l.prerequisites()
	modify(l, "gw-2", func(g *model.Gateway) { g.Status.Health = model.GatewayReady })
	r := l.begin(t.Context(), "node", "drain", "node-2")
	r.err.until(t, "gateway gw-2: its health is Ready")
	modify(l, "gw-2", func(g *model.Gateway) { g.Status.Health = model.GatewayDrained })
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "node node-2 is drained") {
		t.Errorf("%v: %s", err, r.out)
	}
}

func TestRemovingANodeDeletesItsObjectsAndPrintsHowToStopItsServices(t *testing.T) {
	l := start(t)
	l.prerequisites()
	r := l.begin(t.Context(), "node", "remove", "node-2")
	r.err.until(t, "gateway gw-2: it is still being deleted")
	gateway, err := l.Gateways.Get(t.Context(), "gw-2")
	if err != nil {
		t.Fatal(err)
	}
	storetest.During(t, l.Store, func(term *store.Term) {
		if err := term.Remove(t.Context(), gateway); err != nil {
			t.Fatal(err)
		}
	})
	if err := <-r.ended; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gateway gw-2 is gone", "systemctl disable --now sluice-gateway@node-2-1 sluice-gateway@node-2-2 sluice-gateway@gw-2\n", "sluicectl node refresh"} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, r.out)
		}
	}
	if rows := l.must("node", "list"); strings.Contains(rows, "node-2") {
		t.Errorf("the node is still there:\n%s", rows)
	}
	if _, err := l.run("node", "remove", "node-2"); exitCode(err) != exitNotFound {
		t.Errorf("a node that does not exist: %v", err)
	}
}
