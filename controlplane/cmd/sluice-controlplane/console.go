package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sluice.dev/sluice/controlplane/internal/accounts"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/transcode"
	"sluice.dev/sluice/controlplane/internal/web"
)

// defaultLoginFor is a working day.
const defaultLoginFor = 12 * time.Hour

// maxLoginFor bounds the lifetime of a login.
const maxLoginFor = 7 * 24 * time.Hour

// consoleSettings are the flags of the console port.
type consoleSettings struct {
	listen, url string
	loginFor    time.Duration
	openID      web.OpenIDSettings
	secretFile  string
	roles       []string
}

func (c *consoleSettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.listen, "console", "", "host:port of the API for browsers and scripts, over HTTPS, usually port 7464; empty: none")
	flags.DurationVar(&c.loginFor, "login-for", defaultLoginFor, fmt.Sprintf("lifetime of a login, from 1m to %v", maxLoginFor))
	flags.StringVar(&c.url, "console-url", "", "URL of the console as browsers reach it, for --oidc-issuer, as https://sluice.example.com:7464")
	flags.StringVar(&c.openID.Issuer, "oidc-issuer", "", "URL of an OpenID provider by which people log in; empty: none")
	flags.StringVar(&c.openID.ClientID, "oidc-client-id", "", "id that the provider gave this console")
	flags.StringVar(&c.secretFile, "oidc-client-secret-file", "", "file with the secret for that id; empty: a public client")
	flags.StringVar(&c.openID.Authority, "oidc-ca", "", "CA of the provider (PEM); empty: those of the system")
	flags.StringVar(&c.openID.Title, "oidc-title", "OpenID", "name of the provider on the page for login")
	flags.StringSliceVar(&c.openID.Scopes, "oidc-scope", []string{"profile", "email", "groups"}, "scopes that are requested beside openid")
	flags.StringVar(&c.openID.RoleClaim, "oidc-role-claim", "groups", "claim of the ID token that has a person's groups")
	flags.StringArrayVar(&c.roles, "oidc-role", nil, "ROLE=GROUP: a role for the people of a group, as in admin=storage-admins; may be "+
		"repeated, the first that applies counts; roles: viewer, operator, admin")
}

// loginRoles are the roles that a login can have, by the names for people.
var loginRoles = map[string]server.Role{"viewer": server.RoleReadOnly, "operator": server.RoleOperator, "admin": server.RoleAdmin}

// provider returns the OpenID provider of the flags; nil: none.
func (c *consoleSettings) provider() (*web.OpenID, error) {
	if c.openID.Issuer == "" {
		if c.openID.ClientID != "" || len(c.roles) > 0 || c.secretFile != "" {
			return nil, errors.New("--oidc-issuer is missing: the other --oidc flags are those of a provider")
		}
		return nil, nil
	}
	settings := c.openID
	settings.URL = c.url
	for _, text := range c.roles {
		name, group, _ := strings.Cut(text, "=")
		role, known := loginRoles[name]
		if !known || group == "" {
			return nil, fmt.Errorf("--oidc-role: got %q; it has to be viewer, operator or admin, '=' and a group", text)
		}
		settings.Rules = append(settings.Rules, web.RoleRule{Role: role, Value: group})
	}
	if c.secretFile != "" {
		text, err := os.ReadFile(c.secretFile)
		if err != nil {
			return nil, fmt.Errorf("--oidc-client-secret-file: %w", err)
		}
		settings.ClientSecret = trimNewline(string(text))
	}
	return web.NewOpenID(settings)
}

// check refuses flags that cannot be meant, before the store is opened.
func (c *consoleSettings) check() error {
	if c.loginFor < time.Minute || c.loginFor > maxLoginFor {
		return fmt.Errorf("--login-for: got %v; it is from 1m to %v", c.loginFor, maxLoginFor)
	}
	_, err := c.provider()
	return err
}

// serveConsole opens the console port, if one is set. `failed` is called when the port fails later.
func (s *settings) serveConsole(made *server.Server, kept *store.Store, people *accounts.Accounts, failed func(error), log *slog.Logger,
) (*web.Server, error) {
	if s.console.listen == "" {
		return nil, nil
	}
	calls, err := transcode.New(made.Server)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	options := web.Options{Store: kept, Accounts: people, API: calls, LoginFor: s.console.loginFor, Insecure: s.insecure, Log: log}
	if options.OpenID, err = s.console.provider(); err != nil {
		return nil, err
	}
	if !s.insecure {
		if options.TLS, err = server.ConsoleTLS(s.tls); err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
	}
	listener, err := server.Listen(s.console.listen, s.insecure)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	console := web.New(options)
	go func(listener net.Listener) {
		if err := console.Serve(listener); err != nil {
			failed(fmt.Errorf("console: %w", err))
		}
	}(listener)
	log.Info("serving the console", "console", listener.Addr().String())
	return console, nil
}
