package store_test

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/store/storetest"
)

// reclaim gives a claim the key that an earlier release used.
func (f *fixture) reclaim(from, to string) {
	f.t.Helper()
	all, err := shared.Client.Get(f.t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		before, ours := strings.CutSuffix(string(kv.Key), from)
		if !ours || !strings.Contains(before, f.name) {
			continue
		}
		got, err := shared.Client.Get(f.t.Context(), string(kv.Key))
		if err != nil {
			f.t.Fatal(err)
		}
		_, err = shared.Client.Txn(f.t.Context()).Then(clientv3.OpDelete(string(kv.Key)),
			clientv3.OpPut(before+to, string(got.Kvs[0].Value))).Commit()
		if err != nil {
			f.t.Fatal(err)
		}
		return
	}
	f.t.Fatalf("there is no claim %s", from)
}

func TestTwoGatewaysCannotHaveOneAddressInTwoForms(t *testing.T) {
	f := open(t)
	f.prerequisites()
	first := gateway(1)
	first.Spec.ForwardingAddress, first.Spec.Portals[0].Advertised = "[0:0:0:0:0:0:0:1]:03261", "Portal.Example.org:03260"
	if err := f.Gateways.Create(t.Context(), first, false); err != nil {
		t.Fatal(err)
	}
	if first.Spec.ForwardingAddress != "[::1]:3261" || first.Spec.Portals[0].Advertised != "portal.example.org:3260" {
		t.Errorf("stored: %+v", first.Spec)
	}
	refused := func() {
		t.Helper()
		second := gateway(2)
		second.Spec.ForwardingAddress = "[::1]:3261"
		wantError[*store.ExistsError](t, f.Gateways.Create(t.Context(), second, false), "spec.forwardingAddress")
		second = gateway(2)
		second.Spec.Portals[0].Advertised = "portal.example.ORG:3260"
		wantError[*store.ExistsError](t, f.Gateways.Create(t.Context(), second, false), "spec.portals[0].advertised")
	}
	refused()
	// The object as an earlier release stored it: the claims are of the text.
	_, err := storetest.Modify(t.Context(), f.term(), "gw-1", func(g *model.Gateway) (bool, error) {
		g.Spec.ForwardingAddress, g.Spec.Portals[0].Advertised = "[0:0:0:0:0:0:0:1]:03261", "Portal.Example.org:03260"
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f.reclaim("claims/forwarding-address/[::1]:3261", "claims/forwarding-address/[0:0:0:0:0:0:0:1]:03261")
	f.reclaim("claims/portal/portal.example.org:3260", "claims/portal/Portal.Example.org:03260")
	refused()
	// Its next update makes it canonical.
	stored, err := f.Gateways.Get(t.Context(), "gw-1")
	if err != nil {
		t.Fatal(err)
	}
	stored.Spec.Cordoned = true
	if err := f.Gateways.Update(t.Context(), stored, false); err != nil {
		t.Fatal(err)
	}
	if stored.Spec.ForwardingAddress != "[::1]:3261" {
		t.Errorf("updated: %+v", stored.Spec)
	}
	refused()
}
