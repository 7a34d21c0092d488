package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Fatalf("got %v, wanted %v", err, want)
	}
}

func (b *browser) createFabric(name string) error {
	b.t.Helper()
	connection, ctx := b.calls(b.t.Context())
	_, err := pb.NewFabricServiceClient(connection).CreateFabric(ctx, &pb.CreateFabricRequest{
		Fabric: &pb.Fabric{Meta: &pb.ObjectMeta{Name: name}, Spec: &pb.FabricSpec{}}})
	return err
}

func (b *browser) listFabrics() error {
	b.t.Helper()
	connection, ctx := b.calls(b.t.Context())
	_, err := pb.NewFabricServiceClient(connection).ListFabrics(ctx, &pb.ListFabricsRequest{})
	return err
}

func TestALoginHasTheRoleOfItsAccount(t *testing.T) {
	s := start(t, nil)
	for name, want := range map[string]struct {
		role               string
		create, listPeople codes.Code
	}{
		"ada": {"admin", codes.OK, codes.OK}, "oda": {"operator", codes.OK, codes.OK}, "vic": {"viewer", codes.PermissionDenied, codes.OK},
	} {
		b := s.browser("")
		wantStatus(t, b.login(name, password), http.StatusNoContent)
		session := b.do("GET", "/auth/session", "")
		wantStatus(t, session, http.StatusOK)
		if session.body["name"] != name || session.body["role"] != want.role || session.body["authentication"] != "password" {
			t.Errorf("%s: the session is %v", name, session.body)
		}
		wantCode(t, b.createFabric("by-"+name), want.create)
		connection, ctx := b.calls(t.Context())
		people := pb.NewAccountServiceClient(connection)
		_, err := people.ListAccounts(ctx, &pb.ListAccountsRequest{})
		wantCode(t, err, want.listPeople)
		_, err = people.UpdateAccount(ctx, &pb.UpdateAccountRequest{Name: name, Role: pb.AccountRole_ACCOUNT_ROLE_ADMIN})
		if (err == nil) != (name == "ada") {
			t.Errorf("%s makes itself an administrator: %v", name, err)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "caller=oda role=operator method=/sluice.v1.FabricService/CreateFabric object=by-oda") ||
		!strings.Contains(log, "login=password") || strings.Contains(log, password) {
		t.Errorf("the audit log does not name the person, or has the password:\n%s", log)
	}
}

func TestWithoutLoginOrCertificateNoCallIsAnswered(t *testing.T) {
	b := start(t, nil).browser("")
	session := b.do("GET", "/auth/session", "")
	wantStatus(t, session, http.StatusUnauthorized)
	if methods, _ := session.body["methods"].(map[string]any); methods["password"] != true || methods["oidc"] != "" {
		t.Errorf("the ways to log in: %v", session.body)
	}
	wantCode(t, b.listFabrics(), codes.Unauthenticated)
	wantStatus(t, b.do("POST", "/sluice.v1.FabricService/ListFabrics", "{}", "Content-Type", "application/json"), http.StatusUnauthorized)
}

func TestAClientCertificateNeedsNoLogin(t *testing.T) {
	b := start(t, nil).browser("admin")
	session := b.do("GET", "/auth/session", "")
	wantStatus(t, session, http.StatusOK)
	if session.body["name"] != "ann" || session.body["authentication"] != "certificate" {
		t.Errorf("the session is %v", session.body)
	}
}

func TestForgedAndDamagedCookiesAreNoLogin(t *testing.T) {
	s := start(t, nil)
	b := s.browser("")
	wantStatus(t, b.login("ada", password), http.StatusNoContent)
	_, value, _ := strings.Cut(b.cookie(), "=")
	parts := strings.Split(value, ".")
	other := s.browser("")
	wantStatus(t, other.login("vic", password), http.StatusNoContent)
	_, of, _ := strings.Cut(other.cookie(), "=")
	for _, forged := range []string{
		"", ".", "..", "local", strings.Join(parts[:2], "."), value + ".x", value[:len(value)-1], "oidc." + parts[1] + "." + parts[2],
		"local." + parts[1] + "." + strings.Split(of, ".")[2], "local.." + parts[2], "local." + strings.Repeat("YWRh", 1000) + "." + parts[2],
	} {
		found := s.browser("").do("GET", "/auth/session", "", "Cookie", loginCookie+"="+forged)
		if found.StatusCode != http.StatusUnauthorized {
			t.Errorf("cookie %q: %s", forged, found.Status)
		}
	}
}

func TestTheCookieIsForThisHostAndNoScript(t *testing.T) {
	found := start(t, nil).browser("").login("ada", password)
	wantStatus(t, found, http.StatusNoContent)
	cookie := found.Cookies()[0]
	if cookie.Name != "__Host-sluice-login" || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode ||
		cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("the cookie is %v", cookie)
	}
}

// The time of an answer and its text do not tell which names exist.
func TestAWrongPasswordAndAnUnknownNameGetTheSameAnswerUntilTheAddressHasToWait(t *testing.T) {
	s := start(t, nil)
	s.person("ada")
	b := s.browser("")
	texts := map[any]bool{}
	refused := 0
	for range 20 {
		name := []string{"ada", "eve"}[refused%2]
		found := b.login(name, "wrong password")
		if found.StatusCode == http.StatusTooManyRequests {
			if found.Header.Get("Retry-After") == "" {
				t.Error("the answer does not say when to try again")
			}
			break
		}
		wantStatus(t, found, http.StatusUnauthorized)
		texts[found.body["message"]] = true
		refused++
	}
	if refused == 0 || refused == 20 || len(texts) != 1 {
		t.Errorf("%d attempts were possible, with the answers %v", refused, texts)
	}
	wantStatus(t, b.login("ada", password), http.StatusTooManyRequests)
}

func TestALogoutEndsTheLoginAndItsStreams(t *testing.T) {
	s := start(t, nil)
	b := s.browser("")
	wantStatus(t, b.login("vic", password), http.StatusNoContent)
	stream := b.watch()
	cookie := b.cookie()
	wantStatus(t, b.do("POST", "/auth/logout", ""), http.StatusNoContent)
	wantEnd(t, stream)
	if b.cookie() != "" {
		t.Error("the browser still has the cookie")
	}
	wantStatus(t, s.browser("").do("GET", "/auth/session", "", "Cookie", cookie), http.StatusUnauthorized)
}

// The change was made through another replica.
func TestStreamsEndWhenTheAccountIsChanged(t *testing.T) {
	s := start(t, nil)
	b := s.browser("")
	wantStatus(t, b.login("vic", password), http.StatusNoContent)
	stream := b.watch()
	s.console.open.check(t.Context(), s.store, s.console.options.Log)
	if stream.Context().Err() != nil {
		t.Fatal("the stream of a valid login has ended")
	}
	if err := s.store.DeleteAccount(t.Context(), "vic"); err != nil {
		t.Fatal(err)
	}
	s.console.open.check(t.Context(), s.store, s.console.options.Log)
	wantEnd(t, stream)
	wantCode(t, b.listFabrics(), codes.Unauthenticated)
}

func TestAStreamEndsAtTheTimeOfItsLogin(t *testing.T) {
	o := newOpenRequests()
	ctx, remove := o.add(t.Context(), store.Login{Hash: []byte{1}, Expires: time.Now().Add(-time.Second)})
	defer remove()
	if ctx.Err() == nil {
		t.Error("a request continues after the end of its login")
	}
}

// A certificate would outlive the account.
func TestALoginCannotRenewACertificate(t *testing.T) {
	b := start(t, nil).browser("")
	wantStatus(t, b.login("ada", password), http.StatusNoContent)
	connection, ctx := b.calls(t.Context())
	_, err := pb.NewMembershipServiceClient(connection).RenewCertificate(ctx, &pb.RenewCertificateRequest{CertificateRequest: "x"})
	wantCode(t, err, codes.PermissionDenied)
}

type fabricStream = interface {
	Recv() (*pb.WatchFabricsResponse, error)
	Context() context.Context
}

// watch opens a stream and receives its first message.
func (b *browser) watch() fabricStream {
	b.t.Helper()
	connection, ctx := b.calls(b.t.Context())
	stream, err := pb.NewFabricServiceClient(connection).WatchFabrics(ctx, &pb.WatchFabricsRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return stream
}

func wantEnd(t *testing.T, stream fabricStream) {
	t.Helper()
	for {
		if _, err := stream.Recv(); err != nil {
			return
		}
	}
}
