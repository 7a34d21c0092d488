package store_test

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/controlplane/internal/model"
)

func TestTheSessionsOfAGatewayThatIsRemovedAreForgotten(t *testing.T) {
	f := withGateways(t, 2)
	for _, name := range []string{"gw-1", "gw-2"} {
		session := &model.Session{Gateway: name, TSIH: 7}
		if err := connect(f, name, "one").StoreSessions(t.Context(), true, []*model.Session{session}, nil); err != nil {
			t.Fatal(err)
		}
		if name != "gw-2" {
			continue
		}
		if err := f.EvictSession(t.Context(), session, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.term().ForgetGateway(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	left, _, err := f.Sessions(t.Context())
	if err != nil || len(left) != 1 || left[0].Gateway != "gw-1" {
		t.Errorf("sessions %+v, %v", left, err)
	}
	wishes, err := shared.Client.Get(t.Context(), "/sluice/"+f.name+"/evictions/", clientv3.WithPrefix())
	if err != nil || len(wishes.Kvs) > 0 {
		t.Errorf("wishes to evict %v, %v", wishes.Kvs, err)
	}
}
