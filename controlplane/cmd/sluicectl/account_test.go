package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAccountsAreMadeListedChangedAndDeleted(t *testing.T) {
	l := start(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.must("account", "create", "ada", "--role", "admin", "--password-file", file)
	stored, _, err := l.Account(t.Context(), "ada")
	if err != nil || stored.Role != "admin" {
		t.Fatalf("%+v, %v", stored, err)
	}
	l.must("account", "set", "ada", "--role", "viewer")
	if out := l.must("account", "list"); !strings.Contains(out, "ada    viewer") {
		t.Errorf("the list is\n%s", out)
	}
	if out := l.must("account", "list", "-o", "json"); strings.Contains(out, "argon2") || !strings.Contains(out, `"ada"`) {
		t.Errorf("the list is\n%s", out)
	}
	before := stored.Hash
	l.must("account", "set", "ada", "--password-file", file)
	if stored, _, _ = l.Account(t.Context(), "ada"); stored.Hash == before {
		t.Error("the password was not set")
	}
	l.must("account", "delete", "ada")
	for want, arguments := range map[string][]string{
		`there is no account "ada"`:           {"account", "delete", "ada"},
		"--role: got \"king\"":                {"account", "create", "ada", "--role", "king", "--password-file", file},
		"--password-file is missing":          {"account", "create", "ada"},
		"nothing to change":                   {"account", "set", "ada"},
		"must consist of lower-case letters":  {"account", "create", "Ada", "--password-file", file},
		"--password-file: open /nonexistent":  {"account", "create", "ada", "--password-file", "/nonexistent"},
		"password: must be at least 12 bytes": {"account", "create", "ada", "--password-file", "/dev/null"},
	} {
		if _, err := l.run(arguments...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, wanted %q", arguments, err, want)
		}
	}
}
