package store_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
)

// reasons returns the reasons of the events on each host, with their messages.
func (f *fixture) reasons(s *store.Store) map[string]string {
	f.t.Helper()
	events, _, err := s.Events(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	all := map[string]string{}
	for _, event := range events {
		all[event.Name+" "+event.Reason] = event.Message
	}
	return all
}

func TestAnUpgradeReportsEachHostWhoseAccessItCloses(t *testing.T) {
	f := open(t)
	host := func(name string, chap *model.ChapCredentials) *model.Host {
		return &model.Host{Meta: model.Meta{Name: name}, Spec: model.HostSpec{Initiators: []string{"iqn.2026-11.example:" + name},
			Chap: chap, AllowUnauthenticated: chap == nil, MaxSessions: 4}}
	}
	secret := model.NewSecret("a secret of 16 b")
	must(f, f.Hosts, host("open", nil), host("named", &model.ChapCredentials{Username: "web", Password: secret}),
		host("nameless", &model.ChapCredentials{Password: secret}))
	if all := f.reasons(f.Store); len(all) != 0 {
		t.Fatalf("a store of this release reports %v", all)
	}
	// A store of a release before system ids.
	if _, err := shared.Client.Delete(t.Context(), "/sluice/"+f.name+"/system"); err != nil {
		t.Fatal(err)
	}
	upgraded := f.reopen(f.ring)
	all := f.reasons(upgraded)
	if len(all) != 3 || !strings.Contains(all["nameless ChapRequired"], "iqn.2026-11.example:nameless") ||
		all["nameless DiscoveryRequiresChap"] == "" || all["named DiscoveryRequiresChap"] == "" {
		t.Errorf("the upgrade reports %v", all)
	}
	left, err := shared.Client.Get(t.Context(), "/sluice/"+f.name+"/access-report")
	if err != nil || len(left.Kvs) != 0 {
		t.Errorf("the report is due again: %v", err)
	}
}
