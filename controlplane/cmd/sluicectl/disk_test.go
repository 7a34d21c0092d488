package main

import (
	"strings"
	"testing"
)

const diskHost = "--host web --initiator iqn.2026-11.org.example:web"

func (l *live) disk(arguments string) (string, error) {
	return l.run(append([]string{"disk", "create"}, strings.Fields(arguments)...)...)
}

func TestADiskIsAVolumeAndATargetOfItsNameForAHostWithASecret(t *testing.T) {
	l := start(t)
	l.prerequisites()
	if out, err := l.disk("db 1Gi --wait=false " + diskHost); err != nil || out != "" {
		t.Fatalf("%v: %s", err, out)
	}
	for object, want := range map[string]string{
		"volume get db": "1Gi", "target get db -o yaml": "volume: db", "target get db -o json": `"web"`, "host get web": "one-way",
	} {
		if out := l.must(strings.Fields(object)...); !strings.Contains(out, want) {
			t.Errorf("%s has no %s:\n%s", object, want, out)
		}
	}
	before := l.revision()
	if out, err := l.disk("db 1Gi --wait=false " + diskHost); err != nil || l.revision() != before {
		t.Errorf("a repetition changed something: %v\n%s", err, out)
	}
}

func TestAFurtherDiskOfATargetGetsTheFirstFreeNumber(t *testing.T) {
	l := start(t)
	l.prerequisites()
	for _, name := range []string{"a", "b", "c"} {
		if out, err := l.disk(name + " 1Gi --wait=false --target db " + diskHost); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	l.must("target", "remove-lun", "db", "1")
	if out, err := l.disk("b 1Gi --wait=false --target db " + diskHost); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out := l.must("target", "get", "db", "-o", "jsonpath={.spec.luns[*].volume}"); out != "a c b\n" {
		t.Errorf("the target maps %q", out)
	}
}

func TestADiskThatCannotBeMadeIsRefusedWithItsCause(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.must("pool", "create", "slow", "--node", "node-2", "--directory", "/srv/slow")
	if out, err := l.disk("db 1Gi --pool nvme --wait=false " + diskHost); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for arguments, want := range map[string]string{
		"db much --pool nvme " + diskHost:                         `SIZE "much"`,
		"other 1Gi " + diskHost:                                   "there are 2 pools: choose one by --pool",
		"db 2Gi --pool nvme " + diskHost:                          "volume db has 1Gi, not 2Gi",
		"db 1Gi --pool slow " + diskHost:                          "is in pool nvme, not in slow",
		"db 1Gi --pool nvme --host absent":                        "give its iSCSI name by --initiator",
		"db 1Gi --pool nvme --host web --initiator iqn.2026-11:x": "is known as iqn.2026-11.org.example:web",
		"db 1Gi --pool nvme --os beos " + diskHost:                `--os "beos"`,
		"db 1Gi --pool nvme":                                      "host",
	} {
		before := l.revision()
		if out, err := l.disk(arguments + " --wait=false"); err == nil || !strings.Contains(err.Error(), want) || l.revision() != before {
			t.Errorf("%s: %v, not %q\n%s", arguments, err, want, out)
		}
	}
}
