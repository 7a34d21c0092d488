package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/accounts"
	"sluice.dev/sluice/controlplane/internal/certs"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/server"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
	"sluice.dev/sluice/proto/client"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

// lines is a log that may be read while it is written.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// system is a console port over the real services, which clients call by gRPC.
type system struct {
	t        *testing.T
	certs    string
	roots    *x509.CertPool
	base     string
	log      *lines
	store    *store.Store
	accounts *accounts.Accounts
	console  *Server
}

const password = "correct horse battery"

func start(t *testing.T, change func(*Options)) *system {
	t.Helper()
	s := &system{t: t, certs: t.TempDir(), log: &lines{}, roots: x509.NewCertPool()}
	authority, err := certs.OpenAuthority(s.certs)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []certs.Leaf{
		{File: "server", CommonName: "controlplane", Role: "server", Hosts: []string{"127.0.0.1", "localhost"}},
		{File: "admin", CommonName: "ann", Role: "admin"},
	} {
		if err := authority.Issue(leaf); err != nil {
			t.Fatal(err)
		}
	}
	trusted, err := os.ReadFile(filepath.Join(s.certs, certs.CAFile))
	if err != nil || !s.roots.AppendCertsFromPEM(trusted) {
		t.Fatal("no CA", err)
	}
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring}); err != nil {
		t.Fatal(err)
	}
	s.accounts = accounts.New(s.store)
	log := slog.New(slog.NewTextHandler(s.log, nil))
	calls, err := server.New(server.Options{Store: s.store, View: view.New(s.store, log), Insecure: true, Accounts: s.accounts,
		Membership: pb.UnimplementedMembershipServiceServer{}, Log: log, Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(calls.Stop)
	options := Options{Store: s.store, Accounts: s.accounts, API: calls.Server, LoginFor: time.Hour, Log: log}
	if options.TLS, err = server.ConsoleTLS(s.files("server")); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&options)
	}
	s.console = New(options)
	listener, err := server.Listen("127.0.0.1:0", options.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.console.Serve(listener) }()
	t.Cleanup(s.console.Close)
	scheme := "https://"
	if options.TLS == nil {
		scheme = "http://"
	}
	s.base = scheme + listener.Addr().String()
	return s
}

// people are the accounts that login makes.
var people = map[string]pb.AccountRole{"ada": pb.AccountRole_ACCOUNT_ROLE_ADMIN, "oda": pb.AccountRole_ACCOUNT_ROLE_OPERATOR,
	"vic": pb.AccountRole_ACCOUNT_ROLE_VIEWER}

// person makes the account of a name, if it is missing.
func (s *system) person(name string) {
	s.t.Helper()
	_, err := s.accounts.CreateAccount(s.t.Context(), &pb.CreateAccountRequest{Name: name, Role: people[name], Password: password})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		s.t.Fatal(err)
	}
}

func (s *system) files(name string) client.Files {
	at := func(file string) string { return filepath.Join(s.certs, file) }
	return client.Files{CA: at(certs.CAFile), Certificate: at(name + ".crt"), Key: at(name + ".key")}
}

// browser keeps cookies, and follows no redirects.
type browser struct {
	*system
	http *http.Client
}

// browser returns one with the client certificate of a name; empty: none.
func (s *system) browser(certificate string) *browser {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	config := &tls.Config{RootCAs: s.roots}
	if certificate != "" {
		files := s.files(certificate)
		pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &browser{s, &http.Client{Jar: jar, Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// reply is a response whose body was read.
type reply struct {
	*http.Response
	body map[string]any
}

func (b *browser) do(method, path, body string, header ...string) reply {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if request.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			request.Host = header[i+1]
		}
	}
	response, err := b.http.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	found := reply{Response: response, body: map[string]any{}}
	_ = json.NewDecoder(response.Body).Decode(&found.body) // some have no JSON
	return found
}

func (b *browser) login(name, secret string) reply {
	b.t.Helper()
	if secret == password {
		b.person(name)
	}
	body, _ := json.Marshal(map[string]string{"name": name, "password": secret})
	return b.do("POST", "/auth/login", string(body))
}

// cookie is that of the login; empty: none.
func (b *browser) cookie() string {
	at, _ := url.Parse(b.base)
	for _, cookie := range b.http.Jar.Cookies(at) {
		if cookie.Name == loginCookie {
			return cookie.Name + "=" + cookie.Value
		}
	}
	return ""
}

// calls returns a gRPC client of the port, and a context with the browser's cookie.
func (b *browser) calls(ctx context.Context) (*grpc.ClientConn, context.Context) {
	b.t.Helper()
	_, address, _ := strings.Cut(b.base, "://")
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: b.roots})))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = connection.Close() })
	if cookie := b.cookie(); cookie != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "cookie", cookie)
	}
	return connection, ctx
}

func wantStatus(t *testing.T, found reply, want int) {
	t.Helper()
	if found.StatusCode != want {
		t.Fatalf("%s %s: %s, wanted %d: %v", found.Request.Method, found.Request.URL.Path, found.Status, want, found.body)
	}
}
