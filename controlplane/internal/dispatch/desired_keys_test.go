package dispatch

import (
	"bytes"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/view"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// paired is cluster() with gateways that have pairwise keys.
func paired() *view.Objects {
	o := cluster()
	for _, name := range []string{"gw-1", "gw-2", "gw-3"} {
		with(o, name, func(s *model.GatewayStatus) { s.PairwiseKeys = true })
	}
	return o
}

func with(o *view.Objects, name string, change func(*model.GatewayStatus)) {
	gateway := *o.Gateways[name]
	change(&gateway.Status)
	o.Put(&gateway)
}

func pairSettings() Settings {
	now := time.Unix(1000, 0)
	return Settings{ClusterID: "c", Keys: model.RotateForwardingKeys(nil, now),
		Roots: model.RotateForwardingKeysNow(model.RotateForwardingKeys(nil, now), now)}
}

func stateOf(o *view.Objects, gateway string, runs process, settings Settings) desiredState {
	state, _ := desired(o, o.Gateways[gateway], runs, settings, makings{})
	return state
}

func (s desiredState) peer(number string) *pb.DesiredPeer {
	return s[objectKey{pb.ObjectKind_OBJECT_KIND_PEER, number}].GetPeer()
}

func (s desiredState) shared() []*pb.ForwardingKey {
	return s[objectKey{pb.ObjectKind_OBJECT_KIND_SETTINGS, ""}].GetSettings().GetForwardingKeys()
}

func TestEachDirectionOfEachPairOfGatewaysHasAKeyOfItsOwn(t *testing.T) {
	o, settings := paired(), pairSettings()
	runs := process{incarnation: "i", pairwise: true}
	one, two := stateOf(o, "gw-1", runs, settings), stateOf(o, "gw-2", runs, settings)
	own, accepted := one.peer("2").GetOwnKeys(), two.peer("1").GetAcceptedKeys()
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
	if bytes.Equal(own[0].GetKey(), one.peer("2").GetAcceptedKeys()[0].GetKey()) {
		t.Error("both directions have the same key")
	}
	for _, root := range settings.Roots {
		if bytes.Equal(own[0].GetKey(), []byte(root.Key.Reveal())) {
			t.Error("a gateway is told a root key")
		}
	}
	with(o, "gw-1", func(s *model.GatewayStatus) { s.Incarnation = "later" })
	later := stateOf(o, "gw-2", runs, settings).peer("1").GetAcceptedKeys()
	if later[0].GetId() == accepted[0].GetId() || bytes.Equal(later[0].GetKey(), accepted[0].GetKey()) {
		t.Error("another incarnation has the same key")
	}
	if len(one.shared()) != 0 {
		t.Error("keys that all gateways share are sent, and no gateway needs them")
	}
}

func TestADeletedGatewayIsNoPeerAndHasNoKey(t *testing.T) {
	o, runs := paired(), process{incarnation: "i", pairwise: true}
	o.Forget(model.KindGateway, "gw-1")
	if peer := stateOf(o, "gw-2", runs, pairSettings()).peer("1"); peer != nil {
		t.Errorf("gateway 1 was deleted, and gateway 2 is told %d keys of it", len(peer.GetAcceptedKeys()))
	}
}

func TestKeysThatAllShareAreSentOnlyWhileAGatewayNeedsThem(t *testing.T) {
	runs := process{incarnation: "i", pairwise: true}
	for name, c := range map[string]struct {
		change func(*model.GatewayStatus)
		runs   process
		sent   bool
	}{
		"all have pairwise keys":          {func(*model.GatewayStatus) {}, runs, false},
		"one is of an earlier release":    {func(s *model.GatewayStatus) { s.PairwiseKeys = false }, runs, true},
		"one of those is dead":            {func(s *model.GatewayStatus) { s.PairwiseKeys, s.Health = false, model.GatewayDead }, runs, false},
		"one has never been connected":    {func(s *model.GatewayStatus) { s.PairwiseKeys, s.Incarnation = false, "" }, runs, false},
		"it is of an earlier release now": {func(*model.GatewayStatus) {}, process{incarnation: "i"}, true},
	} {
		o := paired()
		with(o, "gw-3", c.change)
		state := stateOf(o, "gw-1", c.runs, pairSettings())
		if sent := len(state.shared()) > 0; sent != c.sent {
			t.Errorf("%s: sent %v", name, sent)
		}
		if got := len(state.peer("2").GetOwnKeys()) > 0; got != c.runs.pairwise {
			t.Errorf("%s: pairwise keys sent: %v", name, got)
		}
	}
}
