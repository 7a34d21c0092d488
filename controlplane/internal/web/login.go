package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/accounts"
	"sluice.dev/sluice/controlplane/internal/attempts"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
)

const (
	// maxLogin bounds the body of a login, in bytes.
	maxLogin = 4 << 10
	// maxName bounds the name of a person, in bytes.
	maxName = 256
)

// session answers with the caller and, without one, with the ways to log in.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	from, err := s.callerOf(r)
	if errors.Is(err, errNoCaller) {
		methods := map[string]any{"password": true, "oidc": ""}
		if s.options.OpenID != nil {
			methods["oidc"] = s.options.OpenID.Title
		}
		answer(w, http.StatusUnauthorized, map[string]any{"methods": methods})
		return
	}
	if err != nil {
		failBy(w, err)
		return
	}
	shown := map[string]string{"name": from.identity.Name, "role": shownRole(from.identity.Role), "authentication": "certificate"}
	switch {
	case s.options.Insecure:
		shown["authentication"] = "none"
	case from.login != nil:
		shown["authentication"] = "oidc"
		if from.login.Provider == "" {
			shown["authentication"] = "password"
		}
		shown["expires"] = from.login.Expires.Format(time.RFC3339)
	}
	answer(w, http.StatusOK, shown)
}

// shownRole is the name of a role for people: the accounts' names.
func shownRole(role server.Role) string {
	if role == server.RoleReadOnly {
		return "viewer"
	}
	return string(role)
}

// login checks the name and password of a local account, in JSON, and sets the cookie.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var given struct{ Name, Password string }
	body, err := readWithin(w, r, maxLogin, headerTimeout)
	if err == nil {
		err = json.Unmarshal(body, &given)
	}
	if err != nil || given.Name == "" || len(given.Name) > maxName {
		fail(w, http.StatusBadRequest, "invalid_argument", `the body has to be JSON, as in {"name": "ada", "password": "…"}`)
		return
	}
	from := addressOf(r)
	if !s.attempts.Permitted(from) {
		w.Header().Set("Retry-After", strconv.Itoa(int(attempts.Every/time.Second)))
		fail(w, http.StatusTooManyRequests, "resource_exhausted", fmt.Sprintf("too many failed logins from this address: wait %s", attempts.Every))
		return
	}
	account, version, err := s.options.Accounts.Check(r.Context(), given.Name, given.Password)
	if err == nil {
		err = s.setLogin(w, r, store.Login{Name: account.Name, Role: account.Role}, version)
	}
	var changed *store.NoAccountError
	if errors.As(err, &changed) {
		err = accounts.ErrWrongPassword
	}
	s.recordLogin(r, given.Name, server.LocalLogin, err)
	switch {
	case errors.Is(err, accounts.ErrWrongPassword):
		s.attempts.Failed(from)
		fail(w, http.StatusUnauthorized, "unauthenticated", err.Error())
	case err != nil:
		failBy(w, err)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// logout ends the login of the request at every replica.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	login, found, err := s.loginOf(r)
	if err == nil && found {
		err = s.options.Store.EndLogin(r.Context(), login)
		s.open.end(login)
		s.audit(r, slog.LevelInfo, login.Name, "logout", err)
	}
	if err != nil {
		failBy(w, err)
		return
	}
	http.SetCookie(w, s.cookie(loginCookie, "", -1, http.SameSiteStrictMode))
	w.WriteHeader(http.StatusNoContent)
}

// failBy answers with the error of a call to the store or to an account.
func failBy(w http.ResponseWriter, err error) {
	if errors.Is(err, accounts.ErrBusy) {
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, "resource_exhausted", err.Error())
		return
	}
	if status.Code(err) == codes.PermissionDenied {
		fail(w, http.StatusForbidden, "permission_denied", status.Convert(err).Message())
		return
	}
	fail(w, http.StatusServiceUnavailable, "unavailable", err.Error())
}

// recordLogin writes an attempt to the audit log.
func (s *Server) recordLogin(r *http.Request, name, provider string, err error) {
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn
	}
	s.audit(r, level, name, "login by "+provider, err)
}

func (s *Server) audit(r *http.Request, level slog.Level, name, what string, err error) {
	result := "OK"
	if err != nil {
		result = err.Error()
	}
	s.options.Log.LogAttrs(r.Context(), level, "audit", slog.String("caller", server.Shortened(name)), slog.String("method", what),
		slog.String("from", r.RemoteAddr), slog.String("result", result))
}

func addressOf(r *http.Request) net.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return &net.TCPAddr{}
	}
	return net.TCPAddrFromAddrPort(at)
}
