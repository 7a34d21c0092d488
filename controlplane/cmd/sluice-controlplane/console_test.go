package main

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/web"
)

// consoleOf parses the flags of the console port.
func consoleOf(t *testing.T, arguments ...string) *consoleSettings {
	t.Helper()
	c, flags := &consoleSettings{}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.flags(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return c
}

// The port is in use, so an attempt to open it would fail.
func TestWithoutAnAddressOfTheConsoleNoPortIsOpened(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for address, fails := range map[string]bool{taken.Addr().String(): true, "": false} {
		s := &settings{insecure: true, console: *consoleOf(t, "--console", address)}
		made := &server.Server{Server: grpc.NewServer()}
		console, err := s.serveConsole(made, nil, nil, func(error) {}, slog.New(slog.DiscardHandler))
		if (err != nil) != fails || console != nil {
			t.Errorf("--console %q: %v, %v", address, console, err)
		}
		made.Stop()
	}
}

func TestWithoutAnIssuerPeopleDoNotLogInByOpenID(t *testing.T) {
	if found, err := consoleOf(t).provider(); found != nil || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

func TestTheProviderIsThatOfTheFlags(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"--console-url", "https://sluice.example.com:7464", "--oidc-issuer", "https://id.example.com", "--oidc-client-id", "console",
		"--oidc-role", "admin=storage=admins", "--oidc-role", "viewer=users"}
	found, err := consoleOf(t, arguments...).provider()
	if err != nil {
		t.Fatal(err)
	}
	rules := []web.RoleRule{{Role: server.RoleAdmin, Value: "storage=admins"}, {Role: server.RoleReadOnly, Value: "users"}}
	if found.Issuer != "https://id.example.com" || found.ClientSecret != "" || !slices.Equal(found.Rules, rules) || found.RoleClaim != "groups" {
		t.Errorf("%+v", found.OpenIDSettings)
	}
	if found, err = consoleOf(t, append(arguments, "--oidc-client-secret-file", secret)...).provider(); err != nil || found.ClientSecret != "s3cret" {
		t.Errorf("with a secret: %v, %v", found, err)
	}
}

func TestFlagsOfTheConsoleThatCannotBeMeantAreNamed(t *testing.T) {
	for want, arguments := range map[string][]string{
		"--login-for: got 1s":         {"--login-for", "1s"},
		"--oidc-issuer is missing":    {"--oidc-client-id", "console"},
		`--oidc-role: got "king=all"`: {"--oidc-issuer", "https://id.example.com", "--oidc-role", "king=all"},
		`--oidc-role: got "admin"`:    {"--oidc-issuer", "https://id.example.com", "--oidc-role", "admin"},
		"--oidc-client-secret-file":   {"--oidc-issuer", "https://id.example.com", "--oidc-client-secret-file", "/nonexistent"},
	} {
		if err := consoleOf(t, arguments...).check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, wanted %q", arguments, err, want)
		}
	}
}
