package web

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
)

// Names of the cookie. A browser accepts the prefix `__Host-` only with Secure, for this host and all paths (RFC 6265bis §4.1.3.2).
const loginCookie = "__Host-sluice-login"

const secretBytes = 32

// caller is who makes a request.
type caller struct {
	identity server.Identity
	// login is nil for a certificate.
	login *store.Login
}

// errNoCaller means that a request has neither a login nor a certificate.
var errNoCaller = errors.New("log in, or use a client certificate")

// callerOf identifies the caller. A login precedes a certificate. Errors: errNoCaller, those of the store and of server.IdentityFrom.
func (s *Server) callerOf(r *http.Request) (caller, error) {
	if s.options.Insecure {
		return caller{identity: server.Identity{Name: "insecure", Role: server.RoleAdmin}}, nil
	}
	login, found, err := s.loginOf(r)
	if err != nil {
		return caller{}, err
	}
	if found {
		provider := login.Provider
		if provider == "" {
			provider = server.LocalLogin
		}
		return caller{server.Identity{Name: login.Name, Role: server.Role(login.Role), Login: provider}, &login}, nil
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return caller{}, errNoCaller
	}
	identity, err := server.IdentityFrom(r.TLS.VerifiedChains[0][0])
	return caller{identity: identity}, err
}

// loginOf returns the login of the request's cookie, if it is valid.
func (s *Server) loginOf(r *http.Request) (store.Login, bool, error) {
	cookie, err := r.Cookie(loginCookie)
	if err != nil {
		return store.Login{}, false, nil
	}
	provider, name, secret, ok := s.parseCookie(cookie.Value)
	if !ok {
		return store.Login{}, false, nil
	}
	hash := sha256.Sum256(secret)
	return s.options.Store.FindLogin(r.Context(), provider, name, hash[:])
}

// parseCookie reads `local.NAME.SECRET` or `oidc.NAME.SECRET`, with name and secret in base64 (RFC 4648 §5).
func (s *Server) parseCookie(value string) (provider, name string, secret []byte, ok bool) {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return "", "", nil, false
	}
	switch {
	case parts[0] == "local":
	case parts[0] == "oidc" && s.options.OpenID != nil:
		provider = s.options.OpenID.Issuer
	default:
		return "", "", nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || len(raw) == 0 || len(raw) > maxName {
		return "", "", nil, false
	}
	secret, err = base64.RawURLEncoding.DecodeString(parts[2])
	return provider, string(raw), secret, err == nil && len(secret) == secretBytes
}

// setLogin stores a login and sends its cookie.
func (s *Server) setLogin(w http.ResponseWriter, r *http.Request, login store.Login, version int64) error {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // it never fails
	hash := sha256.Sum256(secret)
	login.Hash = hash[:]
	if _, err := s.options.Store.AddLogin(r.Context(), login, version, s.options.LoginFor); err != nil {
		return err
	}
	kind := "local"
	if login.Provider != "" {
		kind = "oidc"
	}
	value := kind + "." + base64.RawURLEncoding.EncodeToString([]byte(login.Name)) + "." + base64.RawURLEncoding.EncodeToString(secret)
	http.SetCookie(w, s.cookie(loginCookie, value, int(s.options.LoginFor/time.Second), http.SameSiteStrictMode))
	return nil
}

func (s *Server) cookie(name, value string, seconds int, site http.SameSite) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: site}
}

// authenticated calls the API with the identity of the caller. The request ends when the caller's login ends.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := s.callerOf(r)
		switch {
		case errors.Is(err, errNoCaller):
			fail(w, http.StatusUnauthorized, "unauthenticated", err.Error())
			return
		case err != nil:
			failBy(w, err)
			return
		}
		if !readBody(w, r) {
			return
		}
		ctx := server.WithIdentity(r.Context(), from.identity)
		if from.login != nil {
			var remove func()
			ctx, remove = s.open.add(ctx, *from.login)
			defer remove()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// readBody reads the whole body before the call: calls have one request message, and a slow sender must not occupy a call.
func readBody(w http.ResponseWriter, r *http.Request) bool {
	body, err := readWithin(w, r, maxBody, bodyTimeout)
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		fail(w, http.StatusRequestEntityTooLarge, "resource_exhausted", "the request has more than 8 MiB")
		return false
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_argument", "the request could not be read: "+err.Error())
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// readWithin reads a body of at most `most` bytes within a time. Afterwards the connection has no deadline: a watch has no end.
func readWithin(w http.ResponseWriter, r *http.Request, most int64, limit time.Duration) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(limit)) // every connection of this server has deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
	}
	return body, err
}
