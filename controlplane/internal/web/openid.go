package web

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"sluice.dev/sluice/controlplane/internal/server"
)

const (
	callbackPath = "/auth/oidc/callback"
	// providerTimeout bounds a request to the provider.
	providerTimeout = 10 * time.Second
)

// RoleRule gives a role to people whose claim has a value.
type RoleRule struct {
	Role  server.Role
	Value string
}

// OpenIDSettings name an OpenID provider (OpenID Connect Core 1.0, code flow with PKCE).
type OpenIDSettings struct {
	Issuer, ClientID, ClientSecret string
	// Title names the provider for people.
	Title string
	// URL is that of the console as browsers reach it, without a path.
	URL string
	// RoleClaim has the groups of a person: a text or a list of texts. Rules are tried in order.
	RoleClaim string
	Rules     []RoleRule
	// Scopes beside `openid`.
	Scopes []string
	// Authority is a file of certificates (PEM) that the provider's certificate must chain to; empty: those of the system.
	Authority string
}

// OpenID is a client of a provider. Its methods are safe for concurrent use.
type OpenID struct {
	OpenIDSettings
	client *http.Client
	// provider is nil until it has been reached: a replica starts without its provider.
	provider atomic.Pointer[oidc.Provider]
	reaching singleflight.Group
}

// NewOpenID checks the settings. Errors name the flags of `serve`.
func NewOpenID(settings OpenIDSettings) (*OpenID, error) {
	settings.URL = strings.TrimRight(settings.URL, "/")
	made := &OpenID{OpenIDSettings: settings}
	for name, text := range map[string]string{"--oidc-issuer": made.Issuer, "--console-url": made.URL} {
		parsed, err := url.Parse(text)
		if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.RawQuery != "" || parsed.User != nil {
			return nil, fmt.Errorf("%s: got %q; it has to be a URL like https://sluice.example.com:7464", name, text)
		}
	}
	if made.ClientID == "" {
		return nil, errors.New("--oidc-client-id is missing: it is the id that the provider gave this console")
	}
	if len(made.Rules) == 0 {
		return nil, errors.New("--oidc-role is missing: without a rule like admin=storage-admins no one gets a role")
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if made.Authority != "" {
		text, err := os.ReadFile(made.Authority)
		if err != nil {
			return nil, fmt.Errorf("--oidc-ca: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--oidc-ca: %s has no certificate (PEM)", made.Authority)
		}
	}
	made.client = &http.Client{Transport: transport, Timeout: providerTimeout}
	return made, nil
}

// reach returns the provider, whose configuration is read once. Callers that wait share one request.
func (o *OpenID) reach(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	provider := o.provider.Load()
	if provider == nil {
		_, err, _ := o.reaching.Do("", func() (any, error) {
			// The provider uses the context for its later requests, too. The client's timeout bounds each.
			found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), o.client), o.Issuer)
			if err == nil {
				o.provider.Store(found)
			}
			return nil, err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("the OpenID provider %s cannot be used: %w", o.Issuer, err)
		}
		provider = o.provider.Load()
	}
	return provider, &oauth2.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, Endpoint: provider.Endpoint(), RedirectURL: o.URL + callbackPath,
		Scopes: append([]string{oidc.ScopeOpenID}, o.Scopes...),
	}, nil
}

// person is what an ID token says.
type person struct {
	name string
	role server.Role
}

// errNoRole means that no rule applies to a person.
var errNoRole = errors.New("no role")

// exchange redeems the code of a callback, and verifies the ID token. Errors: errNoRole, with the person's name.
func (o *OpenID) exchange(ctx context.Context, code, verifier, nonce string) (person, error) {
	provider, config, err := o.reach(ctx)
	if err != nil {
		return person{}, err
	}
	ctx = oidc.ClientContext(ctx, o.client)
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return person{}, fmt.Errorf("the provider does not accept the code: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return person{}, errors.New("the provider sent no ID token")
	}
	verified, err := provider.Verifier(&oidc.Config{ClientID: o.ClientID}).Verify(ctx, raw)
	if err != nil {
		return person{}, fmt.Errorf("the ID token is not valid: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(nonce)) != 1 {
		return person{}, errors.New("the ID token is not that of this login")
	}
	claims := map[string]any{}
	if err := verified.Claims(&claims); err != nil {
		return person{}, fmt.Errorf("the claims of the ID token are not valid: %w", err)
	}
	found := person{name: nameIn(claims, verified.Subject)}
	values := textsIn(claims[o.RoleClaim])
	for _, rule := range o.Rules {
		if slices.Contains(values, rule.Value) {
			found.role = rule.Role
			return found, nil
		}
	}
	return found, errNoRole
}

// nameIn returns the name for the audit log: the name that people know, and the subject. Only the subject is unique.
func nameIn(claims map[string]any, subject string) string {
	for _, claim := range []string{"preferred_username", "email", "name"} {
		if text, ok := claims[claim].(string); ok && text != "" && text != subject {
			return limited(text + " (" + subject + ")")
		}
	}
	return limited(subject)
}

func limited(name string) string {
	if len(name) > maxName {
		return strings.ToValidUTF8(name[:maxName], "")
	}
	return name
}

func textsIn(claim any) []string {
	switch value := claim.(type) {
	case string:
		return []string{value}
	case []any:
		var texts []string
		for _, item := range value {
			if text, ok := item.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}
