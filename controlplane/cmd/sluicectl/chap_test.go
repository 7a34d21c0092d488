package main

import (
	"regexp"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

// chapOf returns the stored specification of a host.
func (l *live) chapOf(host string) *model.HostSpec {
	l.t.Helper()
	got, err := l.Hosts.Get(l.t.Context(), host)
	if err != nil {
		l.t.Fatal(err)
	}
	return &got.Spec
}

func TestSetChapChangesNamesAndSecretsAndKeepsTheOthers(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	out := l.must("host", "set-chap", "web", "--chap-user", "web-user", "--mutual-chap-secret-file", file(t, "secret-of-target\n"))
	if out != "host web updated: CHAP name \"web-user\", mutual CHAP secret\n" {
		t.Error(out)
	}
	if spec := l.chapOf("web"); spec.Chap.Username != "web-user" || spec.Chap.Password.Reveal() != "open-sesame-123" ||
		spec.MutualChap.Password.Reveal() != "secret-of-target" {
		t.Errorf("%+v", spec)
	}
	l.must("host", "set-chap", "web", "--chap-secret-file", file(t, "another-secret"))
	if spec := l.chapOf("web"); spec.Chap.Username != "web-user" || spec.Chap.Password.Reveal() != "another-secret" ||
		spec.MutualChap.Password.Reveal() != "secret-of-target" {
		t.Errorf("%+v", spec)
	}
	if out := l.must("host", "set-chap", "web", "--no-mutual-chap"); out != "host web updated: no mutual CHAP\n" || l.chapOf("web").MutualChap != nil {
		t.Error(out)
	}
	if out := l.must("host", "set-chap", "web", "--no-mutual-chap", "--chap-user", "web-user"); out != "host web unchanged\n" {
		t.Error(out)
	}
}

func TestAGeneratedSecretIsStoredAndPrintedOnce(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	printed := regexp.MustCompile(`^host web updated: CHAP secret, mutual CHAP secret\nCHAP secret: (\S{16})\nmutual CHAP secret: (\S{16})\n$`)
	found := printed.FindStringSubmatch(l.must("host", "set-chap", "web", "--generate", "--generate-mutual"))
	if spec := l.chapOf("web"); found == nil || spec.Chap.Password.Reveal() != found[1] || spec.MutualChap.Password.Reveal() != found[2] {
		t.Errorf("%q", found)
	}
	if out := l.must("host", "set-chap", "web", "--generate", "--dry-run"); strings.Contains(out, "CHAP secret: ") ||
		l.chapOf("web").Chap.Password.Reveal() != found[1] {
		t.Errorf("a dry run prints a secret that is not stored: %s", out)
	}
}

func TestASecretIsReadFromStandardInput(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	if out := l.mustWithInput("secret-from-input\n", "host", "set-chap", "web", "--chap-secret-file", "-"); out != "host web updated: CHAP secret\n" {
		t.Error(out)
	}
	if secret := l.chapOf("web").Chap.Password.Reveal(); secret != "secret-from-input" {
		t.Errorf("the secret is %q", secret)
	}
}

func TestSetChapRefusesWhatItCannotStore(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	short, empty := file(t, "short"), file(t, "\n")
	for command, want := range map[string]string{
		"web": "at least one of the flags",
		"web --generate --chap-secret-file " + short:           "[generate chap-secret-file]",
		"web --chap-secret-file " + short:                      "--chap-secret-file (spec.chap.password): has 5 bytes",
		"web --chap-secret-file " + empty:                      "holds no secret",
		"web --chap-secret-file none":                          "--chap-secret-file: ",
		"web --mutual-chap-user db":                            "--mutual-chap-secret-file (spec.mutualChap.password): has 0 bytes",
		"web --generate -o json":                               "leave --output out",
		"web --chap-secret-file - --mutual-chap-secret-file -": "both standard input",
	} {
		_, err := l.run(append([]string{"host", "set-chap"}, strings.Fields(command)...)...)
		if exitCode(err) != exitUsage || !strings.Contains(reported(err), want) {
			t.Errorf("%s: exit code %d: %s", command, exitCode(err), reported(err))
		}
	}
	if spec := l.chapOf("web"); spec.Chap.Password.Reveal() != "open-sesame-123" || spec.MutualChap != nil {
		t.Errorf("%+v", spec)
	}
}
