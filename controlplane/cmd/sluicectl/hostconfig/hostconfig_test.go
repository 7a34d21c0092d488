package hostconfig_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/cmd/sluicectl/hostconfig"
)

// setups are hosts that differ in what they authenticate with.
func setups() map[string]hostconfig.Setup {
	open := hostconfig.Setup{
		Host: "web01", Initiators: []string{"iqn.1993-08.org.debian:01:a", "iqn.1993-08.org.debian:01:b"},
		Targets: []hostconfig.Target{
			{
				IQN: "iqn.2026-11.dev.sluice:db", Portals: []string{"192.0.2.1:3260", "[2001:db8::1]:3260"},
				LUNs: []hostconfig.LUN{{Volume: "orders", NAA: "6aaa"}, {ID: 1, Volume: "items", NAA: "6bbb"}},
			},
			{IQN: "iqn.2026-11.dev.sluice:log", Portals: []string{"192.0.2.1:3260"}, LUNs: []hostconfig.LUN{{Volume: "log", NAA: "6ccc"}}},
		},
	}
	asked, given, mutual := open, open, open
	asked.CHAP = &hostconfig.Credentials{}
	given.CHAP = &hostconfig.Credentials{User: "web", Secret: `it's "12" $x`}
	mutual.CHAP = &hostconfig.Credentials{Secret: "twelve bytes"}
	mutual.Mutual = &hostconfig.Credentials{User: "t", Secret: "other twelve"}
	return map[string]hostconfig.Setup{"open": open, "asked": asked, "given": given, "mutual": mutual}
}

func written(t *testing.T, system string, part hostconfig.Part, setup hostconfig.Setup) string {
	t.Helper()
	var out bytes.Buffer
	if err := hostconfig.Write(&out, system, part, setup); err != nil {
		t.Fatalf("%s, %s: %v", system, part, err)
	}
	return out.String()
}

func TestEachScriptNamesAllTargetsPortalsAndTheInitiator(t *testing.T) {
	for name, setup := range setups() {
		for _, system := range hostconfig.Systems() {
			script := written(t, system, hostconfig.Script, setup)
			words := []string{"iqn.1993-08.org.debian:01:a", "192.0.2.1", "2001:db8::1"}
			for _, target := range setup.Targets {
				words = append(words, target.IQN)
			}
			for _, word := range words {
				if !strings.Contains(script, word) {
					t.Errorf("%s, %s: %s is missing:\n%s", name, system, word, script)
				}
			}
			if has := strings.Contains(script, "SLUICE_CHAP_SECRET"); has != (name == "asked") {
				t.Errorf("%s, %s: the script asks for the secret: %v", name, system, has)
			}
		}
	}
}

func TestTheVerificationChecksEachLogicalUnitByItsDesignator(t *testing.T) {
	for _, system := range hostconfig.Systems() {
		commands := strings.ToLower(written(t, system, hostconfig.Verify, setups()["open"]))
		for _, naa := range []string{"6aaa", "6bbb", "6ccc"} {
			if !strings.Contains(commands, naa) {
				t.Errorf("%s: %s is missing:\n%s", system, naa, commands)
			}
		}
	}
}

func TestEachShellScriptIsValidForTheShell(t *testing.T) {
	for name, setup := range setups() {
		for _, system := range hostconfig.Systems() {
			if system == "windows" {
				continue
			}
			for _, part := range []hostconfig.Part{hostconfig.Script, hostconfig.Verify} {
				check := exec.Command("bash", "-n")
				check.Stdin = strings.NewReader(written(t, system, part, setup))
				if out, err := check.CombinedOutput(); err != nil {
					t.Errorf("%s, %s, %s: %v\n%s", name, system, part, err, out)
				}
			}
		}
	}
}

// A secret is any text, so the line that holds it is run.
func TestTheShellReadsASecretAsItIs(t *testing.T) {
	setup := setups()["given"]
	for _, system := range []string{"debian", "esxi"} {
		script := written(t, system, hostconfig.Script, setup)
		_, line, _ := strings.Cut(script, "\nchap_secret=")
		line, _, _ = strings.Cut(line, "\n")
		out, err := exec.Command("bash", "-c", "chap_secret="+line+"; printf %s \"$chap_secret\"").Output()
		if err != nil || string(out) != setup.CHAP.Secret {
			t.Errorf("%s: %q, %v", system, out, err)
		}
	}
	if script := written(t, "windows", hostconfig.Script, setup); !strings.Contains(script, `'it''s "12" $x'`) {
		t.Errorf("windows: %s", script)
	}
}

func TestLinuxTimeoutsAbandonASilentPathAfterFiveSecondsAtTheEarliest(t *testing.T) {
	script := written(t, "debian", hostconfig.Script, setups()["open"])
	for _, setting := range []string{"noop_out_interval 2", "noop_out_timeout 3", "replacement_timeout 5", "find_multipaths      yes"} {
		if !strings.Contains(script, setting) {
			t.Errorf("%q is missing", setting)
		}
	}
	var all bytes.Buffer
	if err := hostconfig.WriteLinux(&all); err != nil || !strings.Contains(all.String(), "noop_out_timeout = 3") ||
		!strings.Contains(all.String(), `vendor               "SLUICE"`) {
		t.Errorf("%v: %s", err, all.String())
	}
}

func TestASetupThatCannotWorkIsRefusedWithItsCause(t *testing.T) {
	none, unreached, long := setups()["open"], setups()["open"], setups()["given"]
	none.Targets = nil
	unreached.Targets = []hostconfig.Target{{IQN: "iqn.2026-11.dev.sluice:db"}}
	long.CHAP = &hostconfig.Credentials{Secret: "a secret of 17 b."}
	for want, c := range map[string]struct {
		system string
		setup  hostconfig.Setup
	}{
		`"beos" is no operating system`:              {"beos", setups()["open"]},
		"no target permits host web01":               {"debian", none},
		"has no portal that host web01 reaches":      {"debian", unreached},
		"has 17 bytes, and windows supports at most": {"windows", long},
	} {
		err := hostconfig.Write(&bytes.Buffer{}, c.system, hostconfig.Script, c.setup)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	if err := hostconfig.Write(&bytes.Buffer{}, "debian", hostconfig.Script, long); err != nil {
		t.Errorf("Linux supports longer secrets: %v", err)
	}
}
