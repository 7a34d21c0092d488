package web

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"sluice.dev/sluice/controlplane/internal/accounts"
	"sluice.dev/sluice/controlplane/internal/attempts"
	"sluice.dev/sluice/controlplane/internal/store"
)

// Bounds of the port.
const (
	// maxConnections bounds the connections at a time. Further ones wait in the kernel.
	maxConnections = 1024
	headerTimeout  = 5 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
	// maxStreams bounds the concurrent calls of one connection.
	maxStreams = 100
	// pingAfter and writeTimeout detect clients that disappeared without closing the connection.
	pingAfter    = 15 * time.Second
	writeTimeout = 30 * time.Second
	// bodyTimeout and maxBody bound the request of a call: a target with thousands of LUNs and hosts fits.
	bodyTimeout = 30 * time.Second
	maxBody     = 8 << 20
)

// Options configure the port.
type Options struct {
	Store    *store.Store
	Accounts *accounts.Accounts
	// API answers calls. The context of each request has its caller (server.WithIdentity).
	API http.Handler
	// OpenID is nil without a provider.
	OpenID *OpenID
	// LoginFor is the lifetime of a login.
	LoginFor time.Duration
	// TLS is nil for plain connections, which Insecure must allow.
	TLS *tls.Config
	// Insecure makes every caller an administrator; on loopback only.
	Insecure bool
	Log      *slog.Logger
}

// Server is the HTTPS server. Run must run while it serves.
type Server struct {
	http     *http.Server
	options  Options
	attempts *attempts.Limiter
	open     *openRequests
}

// New returns a server that does not listen yet.
func New(options Options) *Server {
	s := &Server{options: options, attempts: attempts.New(), open: newOpenRequests()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/session", s.session)
	mux.HandleFunc("POST /auth/login", s.login)
	mux.HandleFunc("POST /auth/logout", s.logout)
	if options.OpenID != nil {
		mux.HandleFunc("GET /auth/oidc", s.beginOpenID)
		mux.HandleFunc("GET "+callbackPath, s.endOpenID)
	}
	mux.Handle("/", s.authenticated(options.API))
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, "permission_denied", "a page of another origin made this request")
	}))
	s.http = &http.Server{
		Handler: s.guarded(origins.Handler(mux)), TLSConfig: options.TLS, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter,
			PingTimeout: pingAfter, WriteByteTimeout: writeTimeout}, ErrorLog: slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Serve accepts connections until Close.
func (s *Server) Serve(listener net.Listener) error {
	listener = netutil.LimitListener(listener, maxConnections)
	var err error
	if s.options.TLS == nil {
		err = s.http.Serve(listener)
	} else {
		err = s.http.ServeTLS(listener, "", "")
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Run ends the requests of logins that have ended, until the context ends.
func (s *Server) Run(ctx context.Context) error {
	return s.open.run(ctx, s.options.Store, s.options.Log)
}

// Close ends all connections.
func (s *Server) Close() { _ = s.http.Close() }

// guarded precedes every request: headers that restrict what a browser does with the response, and a bound for panics.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			problem := recover()
			if problem == nil {
				return
			}
			if err, is := problem.(error); is && errors.Is(err, http.ErrAbortHandler) {
				panic(problem)
			}
			s.options.Log.Error("a request panicked", "path", r.URL.Path, "problem", problem, "stack", string(debug.Stack()))
			fail(w, http.StatusInternalServerError, "internal", "the request failed inside; the log of this replica says where")
		}()
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "+
			"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if s.options.Insecure && !isLoopback(r.Host) {
			// Without this check, a page could reach the port under a name that it resolves to 127.0.0.1.
			fail(w, http.StatusForbidden, "permission_denied", "with --insecure the console is used as localhost, 127.0.0.1 or [::1]")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil { // it has no port
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// fail answers with an error in the form of the Connect protocol, which clients of all protocols show.
func fail(w http.ResponseWriter, code int, name, message string) {
	answer(w, code, map[string]string{"code": name, "message": message})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}
