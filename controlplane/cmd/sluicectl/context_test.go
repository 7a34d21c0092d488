package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contexts makes the place of an empty file of contexts, and returns its path.
func contexts(t *testing.T) string {
	t.Helper()
	for _, name := range variables {
		t.Setenv(name, "")
	}
	t.Setenv("SLUICE_CONTEXT", "")
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	return filepath.Join(home, "sluice", "config.yaml")
}

// plainRun runs a command without the flags of a connection.
func plainRun(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	root := newRoot("sluicectl")
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(arguments)
	err := execute(t.Context(), root)
	return out.String(), err
}

func mustPlain(t *testing.T, line string) string {
	t.Helper()
	out, err := plainRun(t, strings.Fields(line)...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

func TestContextsAreStoredListedChosenAndDeleted(t *testing.T) {
	path := contexts(t)
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, out string }{
		{"context list", "CURRENT   NAME   SERVER   CERTIFICATE\n"},
		{"context set lab --server cp.lab --insecure", "context lab created, and is the current one\n"},
		{"context set shop --server cp.shop:7 --tls-ca ca.crt --tls-cert admin.crt --tls-key /keys/admin.key", "context shop created\n"},
		{"context use shop", "context shop is the current one\n"},
		{"context list", "CURRENT   NAME   SERVER      CERTIFICATE\n          lab    cp.lab      insecure\n*         shop   cp.shop:7   " + here + "/admin.crt\n"},
		{"context show", "context:\n  server: cp.shop:7\n  tls-ca: " + here + "/ca.crt\n  tls-cert: " + here + "/admin.crt\n  tls-key: /keys/admin.key\nname: shop\n"},
		{"context show --context lab", "context:\n  insecure: true\n  server: cp.lab\nname: lab\n"},
		{"context set lab --server cp.other", "context lab changed\n"},
		{"context show lab", "context:\n  insecure: true\n  server: cp.other\nname: lab\n"},
		{"context delete shop", "context shop deleted; there is no current context now\n"},
		{"context list", "CURRENT   NAME   SERVER     CERTIFICATE\n          lab    cp.other   insecure\n"},
	} {
		if out := mustPlain(t, c.command); out != c.out {
			t.Errorf("%s:\n%s", c.command, out)
		}
		if file, err := os.Stat(path); err == nil && file.Mode().Perm() != 0o600 {
			t.Errorf("after %s the file has mode %o", c.command, file.Mode())
		}
	}
	if all, err := filepath.Glob(path + ".*"); err != nil || len(all) != 0 {
		t.Errorf("%q are left", all)
	}
}

func TestACommandUsesTheCurrentContextOrThatOfTheFlagOrTheEnvironment(t *testing.T) {
	l, other := start(t), start(t)
	contexts(t)
	l.must("fabric", "create", "here")
	other.must("fabric", "create", "there")
	mustPlain(t, "context set one --insecure --server "+l.address)
	mustPlain(t, "context set two --insecure --server "+other.address)
	list := func(want string, arguments ...string) {
		t.Helper()
		out, err := plainRun(t, append([]string{"fabric", "list"}, arguments...)...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: %v\n%s", arguments, err, out)
		}
	}
	list("here")
	list("there", "--context", "two")
	list("there", "--server", other.address)
	t.Setenv("SLUICE_CONTEXT", "two")
	list("there")
	list("here", "--context", "one")
	t.Setenv("SLUICE_SERVER", l.address)
	list("here")
	list("there", "--server", other.address)
	if out, err := plainRun(t, "__complete", "volume", "create", "x", "--context", ""); err != nil || !strings.HasPrefix(out, "one\ntwo\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// Else a context without TLS would send what is meant for a control plane with TLS in the clear.
func TestFilesOnTheCommandLineMeanTLSAlsoInAContextWithout(t *testing.T) {
	l := start(t)
	contexts(t)
	mustPlain(t, "context set one --insecure --server "+l.address)
	if _, err := plainRun(t, "fabric", "list", "--tls-ca", "none.crt"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "TLS needs") {
		t.Error(err)
	}
}

func TestContextsThatCannotBeUsedAreRefusedWithTheRemedy(t *testing.T) {
	l := start(t)
	path := contexts(t)
	for command, want := range map[string]string{
		"context use lab":            "`sluicectl context set` makes one",
		"context show":               "there is no current context",
		"context set lab":            "nothing to store",
		"context set lab --insecure": "give --server",
		"context delete lab":         "there is no context \"lab\"",
		"fabric list --context lab":  "there is no context \"lab\"",
		"fabric list":                "`sluicectl context set`",
		"context use":                "accepts 1 arg",
	} {
		if _, err := plainRun(t, strings.Fields(command)...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", command, err)
		}
	}
	mustPlain(t, "context set lab --server cp --insecure")
	if _, err := plainRun(t, "context", "use", "shop"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "\"shop\"; lab are possible") {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("contexts: {lab: {sever: cp}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := plainRun(t, "fabric", "list"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "sever") {
		t.Error(err)
	}
	l.must("fabric", "list") // the flags say all, so the file is not needed
}

func TestWithoutAHomeDirectoryThereAreNoContexts(t *testing.T) {
	contexts(t)
	t.Setenv("XDG_CONFIG_HOME", "relative")
	t.Setenv("HOME", "")
	if out := mustPlain(t, "context list"); strings.Count(out, "\n") != 1 {
		t.Error(out)
	}
	if _, err := plainRun(t, "context", "set", "lab", "--server", "cp"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "set XDG_CONFIG_HOME or HOME") {
		t.Error(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	mustPlain(t, "context set lab --server cp")
	if _, err := os.Stat(filepath.Join(home, ".config/sluice/config.yaml")); err != nil {
		t.Error(err)
	}
}
