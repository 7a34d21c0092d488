package web

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"sluice.dev/sluice/controlplane/internal/server"
)

// provider is an OpenID provider whose answers a test decides. It verifies PKCE and the redirect.
type provider struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey
	// claims are added to the ID token of the next login, and replace its own.
	claims map[string]any
	// challenge and nonce are those of the login in progress.
	challenge, nonce string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key}
	mux := http.NewServeMux()
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	reply := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token",
			"jwks_uri": p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		_, secret, _ := r.BasicAuth()
		if r.PostFormValue("code") != "code" || base64.RawURLEncoding.EncodeToString(verifier[:]) != p.challenge || secret != "s3cret" {
			http.Error(w, `{"error": "invalid_grant"}`, http.StatusBadRequest)
			return
		}
		reply(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.token()})
	})
	return p
}

func (p *provider) token() string {
	claims := map[string]any{"iss": p.URL, "aud": "console", "sub": "42", "nonce": p.nonce, "exp": time.Now().Add(time.Minute).Unix(),
		"preferred_username": "ada", "groups": []string{"users", "storage-admins"}}
	for name, value := range p.claims {
		claims[name] = value
	}
	text, _ := json.Marshal(claims)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: "1"}}, nil)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	signed, err := signer.Sign(text)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	compact, _ := signed.CompactSerialize()
	return compact
}

func startWith(t *testing.T, p *provider) *system {
	t.Helper()
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, func(o *Options) {
		made, err := NewOpenID(OpenIDSettings{Issuer: p.URL, ClientID: "console", ClientSecret: "s3cret", Title: "Staff", Authority: authority,
			URL: "https://sluice.example.com:7464/", RoleClaim: "groups",
			Rules: []RoleRule{{server.RoleAdmin, "storage-admins"}, {server.RoleReadOnly, "users"}}})
		if err != nil {
			t.Fatal(err)
		}
		o.OpenID = made
	})
}

// begin goes to the provider, and returns the state.
func (b *browser) begin(p *provider) string {
	b.t.Helper()
	to := b.do("GET", "/auth/oidc", "")
	wantStatus(b.t, to, http.StatusFound)
	at, err := url.Parse(to.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(at.String(), p.URL+"/auth?") {
		b.t.Fatalf("the browser is sent to %v", at)
	}
	query := at.Query()
	if query.Get("redirect_uri") != "https://sluice.example.com:7464/auth/oidc/callback" || query.Get("code_challenge_method") != "S256" {
		b.t.Fatalf("the request is %v", query)
	}
	p.challenge, p.nonce = query.Get("code_challenge"), query.Get("nonce")
	return query.Get("state")
}

func TestALoginByOpenIDHasTheRoleOfAGroup(t *testing.T) {
	for name, c := range map[string]struct {
		claims map[string]any
		role   string
	}{
		"the first rule that applies": {nil, "admin"},
		"another rule":                {map[string]any{"groups": []string{"users"}}, "viewer"},
		"one group as a text":         {map[string]any{"groups": "users"}, "viewer"},
		"no group with a rule":        {map[string]any{"groups": []string{"guests"}}, ""},
		"no groups":                   {map[string]any{"groups": nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			b := startWith(t, p).browser("")
			p.claims = c.claims
			end := b.do("GET", callbackPath+"?code=code&state="+b.begin(p), "")
			if c.role == "" {
				wantStatus(t, end, http.StatusForbidden)
				wantStatus(t, b.do("GET", "/auth/session", ""), http.StatusUnauthorized)
				return
			}
			wantStatus(t, end, http.StatusSeeOther)
			session := b.do("GET", "/auth/session", "")
			if session.body["name"] != "ada (42)" || session.body["role"] != c.role || session.body["authentication"] != "oidc" {
				t.Errorf("the session is %v", session.body)
			}
			if !strings.Contains(b.log.String(), `caller="ada (42)" method="login by `+p.URL) {
				t.Errorf("the audit log: %s", b.log.String())
			}
		})
	}
}

func TestALoginByOpenIDThatIsNotGenuineIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		claims      map[string]any
		code, state string
	}{
		"another audience":        {claims: map[string]any{"aud": "other"}},
		"another issuer":          {claims: map[string]any{"iss": "https://other.example"}},
		"an expired token":        {claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}},
		"the nonce of another":    {claims: map[string]any{"nonce": "other"}},
		"a code that is not one":  {code: "other"},
		"the state of another":    {state: "other"},
		"a refusal by the person": {code: "code&error=access_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			b := startWith(t, p).browser("")
			p.claims = c.claims
			state, code := b.begin(p), "code"
			if c.state != "" {
				state = c.state
			}
			if c.code != "" {
				code = c.code
			}
			if end := b.do("GET", callbackPath+"?code="+code+"&state="+state, ""); end.StatusCode < 400 {
				t.Errorf("the login succeeds: %s", end.Status)
			}
			wantStatus(t, b.do("GET", "/auth/session", ""), http.StatusUnauthorized)
		})
	}
}

// The victim's browser did not begin the login: an attacker would make it use the attacker's account.
func TestACallbackInABrowserThatDidNotBeginIsRefused(t *testing.T) {
	p := newProvider(t)
	s := startWith(t, p)
	state := s.browser("").begin(p)
	wantStatus(t, s.browser("").do("GET", callbackPath+"?code=code&state="+state, ""), http.StatusBadRequest)
}

func TestAProviderThatIsNotReachedDisturbsNoOtherLogin(t *testing.T) {
	p := newProvider(t)
	b := startWith(t, p).browser("")
	p.Close()
	wantStatus(t, b.do("GET", "/auth/oidc", ""), http.StatusServiceUnavailable)
	wantStatus(t, b.login("ada", password), http.StatusNoContent)
}

func TestSettingsOfAProviderThatCannotBeMeantNameTheFlag(t *testing.T) {
	good := OpenIDSettings{Issuer: "https://id.example", ClientID: "c", URL: "https://s.example", Rules: []RoleRule{{server.RoleAdmin, "a"}}}
	if _, err := NewOpenID(good); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(*OpenIDSettings){
		"--oidc-issuer":    func(s *OpenIDSettings) { s.Issuer = "http://id.example" },
		"--console-url":    func(s *OpenIDSettings) { s.URL = "" },
		"--oidc-client-id": func(s *OpenIDSettings) { s.ClientID = "" },
		"--oidc-role":      func(s *OpenIDSettings) { s.Rules = nil },
		"--oidc-ca":        func(s *OpenIDSettings) { s.Authority = "/nonexistent" },
	} {
		changed := good
		change(&changed)
		if _, err := NewOpenID(changed); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestWithoutAnAuthorityTheProviderNeedsOneOfTheSystem(t *testing.T) {
	p := newProvider(t) // no authority of the system has signed its certificate
	made, err := NewOpenID(OpenIDSettings{Issuer: p.URL, ClientID: "console", URL: "https://s.example", Rules: []RoleRule{{server.RoleAdmin, "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := made.reach(t.Context()); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("the provider is accepted: %v", err)
	}
}
