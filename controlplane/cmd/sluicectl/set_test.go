package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"sluice.dev/sluice/controlplane/internal/model"
)

func TestSetHasTheFlagsOfEachMutableFieldOfItsKind(t *testing.T) {
	for kind, want := range map[string]string{
		"volume":      "bytes-burst bytes-per-second iops iops-burst retain size trash write-cache",
		"target":      "gateway-pool paths",
		"host":        "allow-unauthenticated initiator max-sessions switch",
		"snapshot":    "retain",
		"pool":        "adoptable-image ceph-key-file data-pool device gateway-pool monitor user warn-percent",
		"gateway":     "forwarding-address node portal weight",
		"gatewaypool": "fabric max-sessions",
		"fabric":      "link subnet switch",
	} {
		var names []string
		create := createOf(kindNamed(kind)).Flags()
		setCommand(kindNamed(kind), &globals{}).LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name == "dry-run" || flag.Name == "wait" {
				return
			}
			names = append(names, flag.Name)
			if same := create.Lookup(flag.Name); same == nil || same.Usage != flag.Usage {
				t.Errorf("%s set --%s is not the flag of create", kind, flag.Name)
			}
		})
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s set has the flags %s", kind, got)
		}
	}
	if nouns := changeableNouns(); len(nouns) != 8 || slices.Contains(nouns, "session") {
		t.Errorf("%v", nouns)
	}
}

func TestSetChangesItsFieldsAndLeavesTheOthers(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	l.must("volume", "set", "orders", "--iops", "500", "--iops-burst", "900", "--retain")
	for _, c := range []struct{ command, out string }{
		{"volume set orders --iops 700 --size 2Gi --dry-run",
			"volume orders updated: spec.qos.iops from 500 to 700, spec.sizeBytes from 1073741824 to 2147483648 (dry run: nothing was changed)"},
		{"volume set orders --size 2Gi --bytes-per-second 100Mi",
			"volume orders updated: spec.qos.bytesPerSecond from 0 to 104857600, spec.sizeBytes from 1073741824 to 2147483648"},
		{"volume set orders --size 2Gi --iops 500", "volume orders unchanged"},
		{"volume set orders --write-cache", "volume orders updated: spec.writeCache from Disabled to Enabled"},
		{"volume set orders --write-cache=false", "volume orders updated: spec.writeCache from Enabled to Disabled"},
		{"volume set orders --retain=false", "volume orders updated: spec.reclaimPolicy from Retain to Delete"},
		{"target set shop --paths 1", "target shop updated: spec.paths from 2 to 1"},
		{"host set web --max-sessions 8", "host web updated: spec.maxSessions from 64 to 8"},
		{"gateway set gw-1 --portal fabric=red,listen=192.0.2.9:3260", "gateway gw-1 updated: spec.portals"},
		{"fabric set red --subnet 192.0.2.0/24,198.51.100.0/24", "fabric red updated: spec.subnets from [] to [192.0.2.0/24 198.51.100.0/24]"},
		{"gatewaypool set default --max-sessions 9", "gatewaypool default updated: spec.maxSessionsPerGateway from 4096 to 9"},
		{"pool set nvme --warn-percent 70", "pool nvme updated: spec.warnPercent from 85 to 70"},
	} {
		if out := l.must(strings.Fields(c.command)...); out != c.out+"\n" {
			t.Errorf("%s: %s", c.command, out)
		}
	}
	volume, err := l.Volumes.Get(t.Context(), "orders")
	if err != nil || volume.Spec.QoS != (model.QoS{IOPS: 500, IOPSBurst: 900, BytesPerSecond: 100 << 20}) || volume.Spec.SizeBytes != 2<<30 {
		t.Errorf("%+v, %v", volume.Spec, err)
	}
	host, err := l.Hosts.Get(t.Context(), "web")
	if err != nil || host.Spec.Chap.Password.Reveal() != "open-sesame-123" {
		t.Errorf("%+v, %v", host.Spec, err)
	}
}

func TestAPoolInCephGetsAnotherUserAndKey(t *testing.T) {
	l := start(t)
	l.must("pool", "create", "ceph", "--monitor", "192.0.2.9:3300", "--user", "a", "--ceph-key-file", file(t, "key-of-a"), "--ceph-pool", "p")
	out := l.must("pool", "set", "ceph", "--user", "b", "--ceph-key-file", file(t, "key-of-b\n"))
	if out != "pool ceph updated: spec.rbd.key, spec.rbd.user from a to b\n" {
		t.Error(out)
	}
	pool, err := l.StoragePools.Get(t.Context(), "ceph")
	if err != nil || pool.Spec.RBD.Key.Reveal() != "key-of-b" || pool.Spec.RBD.User != "b" || pool.Spec.RBD.Pool != "p" {
		t.Errorf("%+v, %v", pool.Spec.RBD, err)
	}
}

func TestSetRefusesWhatCannotChange(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	for command, want := range map[string]struct {
		code int
		text string
	}{
		"volume set orders":                  {exitUsage, "at least one of the flags"},
		"volume set orders --pool other":     {exitUsage, "unknown flag: --pool"},
		"volume set orders --size 1Mi":       {exitUsage, "--size (spec.sizeBytes): "},
		"volume set orders --size much":      {exitUsage, "--size \"much\""},
		"volume set orders --retain --trash": {exitUsage, "[retain trash]"},
		"volume set none --iops 1":           {exitNotFound, "none"},
		"pool set nvme --user a":             {exitUsage, "spec.rbd.user: the object has local instead"},
	} {
		_, err := l.run(strings.Fields(command)...)
		if exitCode(err) != want.code || !strings.Contains(reported(err), want.text) {
			t.Errorf("%s: exit code %d: %s", command, exitCode(err), reported(err))
		}
	}
}

func TestSetWaitsUntilHostsSeeTheSize(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("volume", "create", "orders", "--pool", "nvme", "--size", "1Gi")
	modify(l, "orders", func(v *model.Volume) { v.Status.CapacityBytes = 1 << 30 })
	r := l.begin(t.Context(), "volume", "set", "orders", "--size", "2Gi", "--wait")
	r.err.until(t, "hosts see 1Gi of 2Gi")
	modify(l, "orders", func(v *model.Volume) { v.Status.CapacityBytes = 2 << 30 })
	if err := <-r.ended; err != nil || !strings.Contains(r.out.String(), "updated: spec.sizeBytes") {
		t.Fatalf("%v\n%s", err, r.out)
	}
}

func TestLabelsAreSetAndRemoved(t *testing.T) {
	l := start(t)
	l.must("fabric", "create", "red", "--label", "team=shop,stage=test")
	for _, c := range []struct{ command, out string }{
		{"label fabric red team=web stage- --dry-run", "fabric red updated: label stage removed, label team=web (dry run: nothing was changed)"},
		{"label fabric red team=web stage-", "fabric red updated: label stage removed, label team=web"},
		{"label fabrics red team=web stage-", "fabric red unchanged"},
		{"label Fabric red empty=", "fabric red updated: label empty="},
	} {
		if out := l.must(strings.Fields(c.command)...); out != c.out+"\n" {
			t.Errorf("%s: %s", c.command, out)
		}
	}
	if out := l.must("fabric", "list", "-l", "team=web,empty="); strings.Count(out, "\n") != 2 {
		t.Error(out)
	}
	for command, code := range map[string]int{"label fabric red": exitUsage, "label fabric red team": exitUsage, "label fabric red =x": exitUsage,
		"label fabric red a=b a-": exitUsage, "label session s a=b": exitUsage, "label nothing x a=b": exitUsage, "label fabric none a=b": exitNotFound} {
		if _, err := l.run(strings.Fields(command)...); exitCode(err) != code {
			t.Errorf("%s: %v", command, err)
		}
	}
}
