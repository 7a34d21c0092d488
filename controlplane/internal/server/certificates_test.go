package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/api"
)

func TestACertificateThatEndsSoonIsReportedOnceADayUntilItIsRenewed(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	var reports []string
	c := NewCertificates(nil, slog.Default(), func(role Role, name, _ string) {
		reports = append(reports, fmt.Sprintf("%s %s", role, name))
	}, prometheus.NewRegistry())
	c.now = func() time.Time { return now }
	first, second := holder{"gateway", "gw-1"}, holder{"operator", "opa"}
	end := now.Add(29 * 24 * time.Hour)
	c.record(first, end)
	c.record(second, now.Add(33*24*time.Hour))
	c.record(first, end)
	if len(reports) != 1 || reports[0] != "gateway gw-1" {
		t.Fatalf("reported %v, want gateway gw-1 once", reports)
	}
	now = now.Add(reportAgain)
	c.check()
	if len(reports) != 2 {
		t.Errorf("a day later reported %v", reports)
	}
	c.record(first, now.Add(300*24*time.Hour))
	now = now.Add(2 * reportAgain)
	c.record(first, now.Add(298*24*time.Hour))
	if c.check(); len(reports) != 3 || reports[2] != "operator opa" {
		t.Errorf("after the renewal reported %v", reports)
	}
	now = now.Add(forgetAfter + time.Hour)
	if c.check(); len(c.List()) != 0 {
		t.Errorf("remembered without end: %v", c.List())
	}
}

func TestTheCertificatesThatAreRememberedAreBounded(t *testing.T) {
	now := time.Now()
	c := NewCertificates(nil, slog.Default(), nil, prometheus.NewRegistry())
	c.now = func() time.Time { now = now.Add(time.Millisecond); return now }
	for i := range maxCertificates + 10 {
		c.record(holder{"gateway", fmt.Sprint(i)}, now.Add(300*24*time.Hour))
	}
	if len(c.List()) != maxCertificates {
		t.Errorf("%d are remembered, at most %d should be", len(c.List()), maxCertificates)
	}
	for _, known := range c.List() {
		if known.Holder == "0" {
			t.Error("the oldest is remembered still")
		}
	}
}

// Prometheus panics on a label value that is not UTF-8.
func TestTheNameOfACertificateIsRememberedAsUTF8(t *testing.T) {
	c := NewCertificates(nil, slog.Default(), nil, prometheus.NewRegistry())
	for name, want := range map[string]string{
		strings.Repeat("ä", maxHolder): strings.Repeat("ä", maxHolder/2), // two bytes each; the bound is odd
		"gw-\xff1":                     "gw-1",
	} {
		c.record(holder{"gateway", name}, time.Now().Add(300*24*time.Hour))
		if !slices.ContainsFunc(c.List(), func(known api.Certificate) bool { return known.Holder == want }) {
			t.Errorf("%q: remembered are %v", name, c.List())
		}
	}
}

// A renewed certificate is used from the next connection on.
func TestTheStreamOfAGatewayEndsOnceADayWhileItsCertificateEndsSoon(t *testing.T) {
	now := time.Now()
	cases := []struct {
		role      Role
		age, left time.Duration
		want      codes.Code
	}{
		{RoleGateway, 25 * time.Hour, 29 * 24 * time.Hour, codes.Unavailable},
		{RoleGateway, 23 * time.Hour, 29 * 24 * time.Hour, codes.OK},
		{RoleGateway, 25 * time.Hour, 31 * 24 * time.Hour, codes.OK},
		{RoleOperator, 25 * time.Hour, 29 * 24 * time.Hour, codes.OK},
	}
	for _, c := range cases {
		ctx := context.WithValue(t.Context(), identityKey{}, Identity{Name: "x", Role: c.role, CertificateEnd: now.Add(c.left)})
		stream := &admitted{ctx: ctx, begun: now.Add(-c.age)}
		if got := status.Code(stream.renewal(now)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
