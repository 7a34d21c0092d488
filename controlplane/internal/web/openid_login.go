package web

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
)

const (
	// beginCookie holds what the callback has to match, for openIDFor.
	beginCookie = "__Host-sluice-oidc"
	openIDFor   = 10 * time.Minute
)

// beginOpenID sends the browser to the provider.
func (s *Server) beginOpenID(w http.ResponseWriter, r *http.Request) {
	_, config, err := s.options.OpenID.reach(r.Context())
	if err != nil {
		s.options.Log.Warn("no login by OpenID", "problem", err)
		explain(w, http.StatusServiceUnavailable, "The OpenID provider cannot be used. The log of this replica says why.")
		return
	}
	state, nonce, verifier := randomText(), randomText(), oauth2.GenerateVerifier()
	http.SetCookie(w, s.cookie(beginCookie, state+"."+nonce+"."+verifier, int(openIDFor/time.Second), http.SameSiteLaxMode))
	http.Redirect(w, r, config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), http.StatusFound)
}

// endOpenID is where the provider sends the browser back.
func (s *Server) endOpenID(w http.ResponseWriter, r *http.Request) {
	begun, err := r.Cookie(beginCookie)
	http.SetCookie(w, s.cookie(beginCookie, "", -1, http.SameSiteLaxMode))
	var parts []string
	if err == nil {
		parts = strings.Split(begun.Value, ".")
	}
	query := r.URL.Query()
	if len(parts) != 3 || subtle.ConstantTimeCompare([]byte(parts[0]), []byte(query.Get("state"))) != 1 {
		explain(w, http.StatusBadRequest, "This login did not begin in this browser, or more than 10 minutes ago. Log in again.")
		return
	}
	if refusal := query.Get("error"); refusal != "" {
		s.recordLogin(r, "", s.options.OpenID.Issuer, errors.New("the provider refused: "+server.Shortened(refusal)))
		explain(w, http.StatusForbidden, "The OpenID provider refused the login.")
		return
	}
	found, err := s.options.OpenID.exchange(r.Context(), query.Get("code"), parts[2], parts[1])
	if err == nil {
		err = s.setLogin(w, r, store.Login{Name: found.name, Role: string(found.role), Provider: s.options.OpenID.Issuer}, 0)
	}
	s.recordLogin(r, found.name, s.options.OpenID.Issuer, err)
	switch {
	case errors.Is(err, errNoRole):
		explain(w, http.StatusForbidden, "You have no role in Sluice. An administrator gives one to a group by `--oidc-role`.")
	case err != nil:
		s.options.Log.LogAttrs(r.Context(), slog.LevelWarn, "a login by OpenID failed", slog.Any("problem", err))
		explain(w, http.StatusBadGateway, "The login failed. The log of this replica says why.")
	default:
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// explain answers a page of text: a person's browser shows it.
func explain(w http.ResponseWriter, code int, text string) { http.Error(w, text, code) }

func randomText() string {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // it never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}
