package main

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

// reachable gives the target of the shop a portal on each of two fabrics.
func (l *live) reachable() {
	l.t.Helper()
	l.working()
	l.must("fabric", "create", "blue")
	modify(l, "gw-1", func(g *model.Gateway) {
		g.Spec.Portals = []model.Portal{{Listen: "192.0.2.1:3260", Advertised: "192.0.2.1:3260", Fabric: "red"},
			{Listen: "198.51.100.1:3260", Advertised: "198.51.100.1:3260", Fabric: "blue"}}
		g.Status.PortalGroupTags = map[string]uint32{"red": 1, "blue": 2}
	})
	modify(l, "shop", func(t *model.Target) {
		t.Status.PathSet = []uint32{1}
		t.Status.Ports = []model.TargetPort{{Gateway: 1, PortalGroupTag: 1, RelativePortID: 1}, {Gateway: 1, PortalGroupTag: 2, RelativePortID: 2}}
	})
}

func TestTheScriptOfAHostNamesThePortalsOnItsFabrics(t *testing.T) {
	l := start(t)
	l.reachable()
	for _, c := range []struct {
		switches []string
		blue     bool
	}{{nil, true}, {[]string{"red/r1"}, false}} {
		modify(l, "web", func(h *model.Host) { h.Spec.Switches = c.switches })
		script := l.must("host-config", "web")
		for word, wanted := range map[string]bool{
			"192.0.2.1:3260": true, "198.51.100.1:3260": c.blue, "iqn.2026-11.org.example:web": true, "SLUICE_CHAP_SECRET": true,
		} {
			if strings.Contains(script, word) != wanted {
				t.Errorf("host on switches %v: the script names %s: %v\n%s", c.switches, word, !wanted, script)
			}
		}
	}
}

func TestHostConfigNamesWhatIsWrongWithItsArguments(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("host", "create", "lonely", "--initiator", "iqn.2026-11.org.example:lonely", "--allow-unauthenticated")
	for arguments, want := range map[string]string{
		"windows":                      "write `host-config HOST --os windows`",
		"lonely --os beos":             `--os "beos": use one of debian`,
		"lonely":                       "no target permits host lonely",
		"absent":                       "host absent",
		"lonely --verify":              "no target permits host lonely",
		"lonely --expect":              "no target permits host lonely",
		"lonely --expect --verify":     "none of the others can be",
		"lonely --expect --os windows": "none of the others can be",
		"lonely --os debian":           "sluicectl target create NAME --lun 0=VOLUME --host lonely",
	} {
		if out, err := l.run(append([]string{"host-config"}, strings.Fields(arguments)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q\n%s", arguments, err, want, out)
		}
	}
}

func TestTheSettingsOfAllLinuxHostsNeedNoControlPlane(t *testing.T) {
	var out strings.Builder
	root := newRoot("sluicectl")
	root.SetOut(&out)
	root.SetArgs([]string{"host-config", "linux"})
	if err := root.Execute(); err != nil || !strings.Contains(out.String(), `hardware_handler     "1 alua"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestWhatAHostHasInTheClusterNamesEachPortalAndLogicalUnit(t *testing.T) {
	l := start(t)
	l.reachable()
	modify(l, "web", func(h *model.Host) { h.Spec.Switches = []string{"red/r1"} })
	out := l.must("host-config", "web", "--expect")
	naa := strings.TrimSpace(l.must("volume", "get", "orders", "-o", "jsonpath={.status.naa}"))
	const iqn = "iqn.2026-11.dev.sluice:shop"
	for line, wanted := range map[string]bool{
		"initiator iqn.2026-11.org.example:web\n": true, "portal " + iqn + " 192.0.2.1:3260\n": true,
		"portal " + iqn + " 198.51.100.1:3260\n": false, "lun " + iqn + " 0 " + naa + " orders\n": true,
	} {
		if strings.Contains(out, line) != wanted {
			t.Errorf("%q is there: %v\n%s", line, !wanted, out)
		}
	}
}
