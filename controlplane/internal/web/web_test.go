package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestAPageOfAnotherOriginCanNotUseALogin(t *testing.T) {
	b := start(t, nil).browser("")
	wantStatus(t, b.login("ada", password), http.StatusNoContent)
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		found := b.do("POST", "/auth/logout", "", header...)
		if found.StatusCode != http.StatusForbidden {
			t.Errorf("%v: %s", header, found.Status)
		}
	}
	wantStatus(t, b.do("POST", "/auth/logout", "", "Origin", b.base, "Sec-Fetch-Site", "same-origin"), http.StatusNoContent)
}

func TestEveryAnswerRestrictsTheBrowser(t *testing.T) {
	b := start(t, nil).browser("")
	for _, path := range []string{"/", "/auth/session", "/nothing"} {
		header := b.do("GET", path, "").Header
		policy := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q has no %s", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, header)
		}
	}
}

func TestTooLongBodiesAreRefused(t *testing.T) {
	b := start(t, nil).browser("admin")
	wantStatus(t, b.do("POST", "/auth/login", strings.Repeat("x", maxLogin+1)), http.StatusBadRequest)
	wantStatus(t, b.do("POST", "/sluice.v1.FabricService/ListFabrics", strings.Repeat("x", maxBody+1)), http.StatusRequestEntityTooLarge)
}

// A page of any site can resolve its own name to 127.0.0.1.
func TestAnInsecurePortAnswersOnlyUnderTheNamesOfThisMachine(t *testing.T) {
	b := start(t, func(o *Options) { o.TLS, o.Insecure = nil, true }).browser("")
	wantStatus(t, b.do("GET", "/auth/session", ""), http.StatusOK)
	for host, want := range map[string]int{"localhost:1": http.StatusOK, "[::1]:1": http.StatusOK, "[::1]": http.StatusOK, "evil.example": http.StatusForbidden,
		"127.0.0.1.evil.example:7464": http.StatusForbidden, "": http.StatusOK} {
		if found := b.do("GET", "/auth/session", "", "Host", host); found.StatusCode != want {
			t.Errorf("host %q: %s", host, found.Status)
		}
	}
}
