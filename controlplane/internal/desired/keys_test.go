package desired_test

import (
	"bytes"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/desired"
	"sluice.dev/sluice/controlplane/internal/desired/desiredtest"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/objects"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// paired returns desiredtest.Cluster() with gateways that have pairwise keys.
func paired() *objects.Objects {
	o := desiredtest.Cluster()
	for _, name := range []string{"gw-1", "gw-2", "gw-3"} {
		with(o, name, func(s *model.GatewayStatus) { s.PairwiseKeys = true })
	}
	return o
}

func with(o *objects.Objects, name string, change func(*model.GatewayStatus)) {
	gateway := *o.Gateways[name]
	change(&gateway.Status)
	o.Put(&gateway)
}

func pairSettings() desired.Settings {
	now := time.Unix(1000, 0)
	return desired.Settings{ClusterID: "c", Keys: model.RotateForwardingKeys(nil, now),
		Roots: model.RotateForwardingKeysNow(model.RotateForwardingKeys(nil, now), now)}
}

func stateOf(o *objects.Objects, gateway string, runs desired.Process, settings desired.Settings) desired.State {
	state, _ := desired.Build(o, o.Gateways[gateway], runs, settings, desired.Cache{})
	return state
}

func peerIn(s desired.State, number string) *pb.DesiredPeer {
	return s[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_PEER, ID: number}].GetPeer()
}

func sharedIn(s desired.State) []*pb.ForwardingKey {
	return s[desired.Key{Kind: pb.ObjectKind_OBJECT_KIND_SETTINGS, ID: ""}].GetSettings().GetForwardingKeys()
}

func TestEachDirectionOfEachPairOfGatewaysHasAKeyOfItsOwn(t *testing.T) {
	o, settings := paired(), pairSettings()
	runs := desired.Process{Incarnation: "i", Pairwise: true}
	one, two := stateOf(o, "gw-1", runs, settings), stateOf(o, "gw-2", runs, settings)
	own, accepted := peerIn(one, "2").GetOwnKeys(), peerIn(two, "1").GetAcceptedKeys()
	if len(own) != 2 || len(accepted) != 2 {
		t.Fatalf("%d keys of two generations, %d accepted", len(own), len(accepted))
	}
	for i := range own {
		if own[i].GetId() != accepted[i].GetId() || !bytes.Equal(own[i].GetKey(), accepted[i].GetKey()) {
			t.Errorf("generation %d: the peer does not accept the gateway's key", i)
		}
	}
	if bytes.Equal(own[0].GetKey(), own[1].GetKey()) {
		t.Error("two generations have the same key")
	}
	if bytes.Equal(own[0].GetKey(), peerIn(one, "2").GetAcceptedKeys()[0].GetKey()) {
		t.Error("both directions have the same key")
	}
	for _, root := range settings.Roots {
		if bytes.Equal(own[0].GetKey(), []byte(root.Key.Reveal())) {
			t.Error("a gateway receives a root key")
		}
	}
	with(o, "gw-1", func(s *model.GatewayStatus) { s.Incarnation = "later" })
	later := peerIn(stateOf(o, "gw-2", runs, settings), "1").GetAcceptedKeys()
	if later[0].GetId() == accepted[0].GetId() || bytes.Equal(later[0].GetKey(), accepted[0].GetKey()) {
		t.Error("another incarnation has the same key")
	}
	if len(sharedIn(one)) != 0 {
		t.Error("keys that all gateways share are sent, and no gateway needs them")
	}
}

func TestADeletedGatewayIsNoPeerAndHasNoKey(t *testing.T) {
	o, runs := paired(), desired.Process{Incarnation: "i", Pairwise: true}
	o.Forget(model.KindGateway, "gw-1")
	if peer := peerIn(stateOf(o, "gw-2", runs, pairSettings()), "1"); peer != nil {
		t.Errorf("gateway 1 was deleted, and gateway 2 receives %d keys of it", len(peer.GetAcceptedKeys()))
	}
}

func TestKeysThatAllShareAreSentOnlyWhileAGatewayNeedsThem(t *testing.T) {
	runs := desired.Process{Incarnation: "i", Pairwise: true}
	for name, c := range map[string]struct {
		change func(*model.GatewayStatus)
		runs   desired.Process
		sent   bool
	}{
		"all have pairwise keys":          {func(*model.GatewayStatus) {}, runs, false},
		"one is of an earlier release":    {func(s *model.GatewayStatus) { s.PairwiseKeys = false }, runs, true},
		"one of those is dead":            {func(s *model.GatewayStatus) { s.PairwiseKeys, s.Health = false, model.GatewayDead }, runs, false},
		"one has never been connected":    {func(s *model.GatewayStatus) { s.PairwiseKeys, s.Incarnation = false, "" }, runs, false},
		"it is of an earlier release now": {func(*model.GatewayStatus) {}, desired.Process{Incarnation: "i"}, true},
	} {
		o := paired()
		with(o, "gw-3", c.change)
		state := stateOf(o, "gw-1", c.runs, pairSettings())
		if sent := len(sharedIn(state)) > 0; sent != c.sent {
			t.Errorf("%s: sent %v", name, sent)
		}
		if got := len(peerIn(state, "2").GetOwnKeys()) > 0; got != c.runs.Pairwise {
			t.Errorf("%s: pairwise keys sent: %v", name, got)
		}
	}
}
