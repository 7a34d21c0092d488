package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	pb "sluice.dev/sluice/proto/sluice/v1"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const authorizationFailure = 0x0202 // RFC 7143 §11.13.5

// copied waits until a gateway has saved its keys with every other gateway.
func copied(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway, peers int) *cluster.CopiedState {
	t.Helper()
	var state *cluster.CopiedState
	if err := netns.Until(ctx, func() (err error) {
		state, err = c.CopyState(gateway)
		if err != nil {
			return err
		}
		keyed := 0
		for _, peer := range state.Peers {
			// A gateway of an earlier release has only the shared keys.
			if peer.OwnKeys = append(peer.OwnKeys, state.Settings.GetForwardingKeys()...); len(peer.OwnKeys) > 0 {
				keyed++
			}
		}
		if keyed != peers {
			return fmt.Errorf("%d peers with keys", keyed)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if shared := len(state.Settings.GetForwardingKeys()); shared != 0 {
		t.Errorf("%d keys that all gateways share", shared)
	}
	return state
}

// incarnation returns the incarnation of a gateway, from 0, as its peer knows it.
func incarnation(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway, peer int) string {
	t.Helper()
	state := copied(ctx, t, c, peer, len(c.Gateways)-1)
	return state.Peers[uint32(gateway+1)].GetIncarnation()
}

func refusedWith(t *testing.T, what string, err error, status uint16) {
	t.Helper()
	var refused *initiator.LoginError
	switch {
	case err == nil:
		t.Errorf("%s is admitted", what)
	case !errors.As(err, &refused) || refused.Status != status:
		t.Errorf("%s gets no status %04x: %v", what, status, err)
	}
}

// A copied desired state gives access only to that gateway's peers, in its name, for hosts that they admit.
func TestACopiedDesiredStateOpensNoOtherGatewaysSessions(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	const thief, owner, other = 0, 1, 2
	state := copied(ctx, t, c, thief, 2)
	at := state.Peers[owner+1]
	forged := cluster.Forged{Address: c.ForwardingAddress(owner), Owner: at, Number: thief + 1,
		Incarnation: incarnation(ctx, t, c, thief, owner), Key: at.GetOwnKeys()[0], Initiator: cluster.Initiator + "1"}
	if err := forged.Login(ctx); err != nil {
		t.Fatal("the gateway itself is refused, so that this test would prove nothing: ", err)
	}
	keys := map[string]*pb.ForwardingKey{"its own key": at.GetOwnKeys()[0],
		"its key for another gateway": state.Peers[other+1].GetOwnKeys()[0]}
	if accepted := at.GetAcceptedKeys(); len(accepted) > 0 {
		keys["the owner's key"] = accepted[0]
	}
	for name, key := range keys {
		claim := forged
		claim.Key, claim.Number, claim.Incarnation = key, other+1, state.Peers[other+1].GetIncarnation()
		refusedWith(t, "gateway 1 as gateway 3 with "+name, claim.Login(ctx), 0x0201)
		if name != "its own key" {
			claim = forged
			claim.Key = key
			refusedWith(t, "gateway 1 with "+name, claim.Login(ctx), 0x0201)
		}
	}
	unknown := forged
	unknown.Number = 7
	refusedWith(t, "a gateway that does not exist", unknown.Login(ctx), 0x0201)
	former := forged
	former.Incarnation = "another"
	refusedWith(t, "another incarnation", former.Login(ctx), 0x0201)
	absent := forged
	absent.Initiator = "iqn.2026-11.dev.sluice:absent"
	refusedWith(t, "a host that does not exist", absent.Login(ctx), authorizationFailure)

	if err := c.Gateways[thief].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error {
		_, err := c.Control(ctx, "gateway", "delete", cluster.GatewayName(thief), "--yes")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error {
		var refused *initiator.LoginError
		if err := forged.Login(ctx); !errors.As(err, &refused) {
			return fmt.Errorf("after `gateway delete`: %w", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestKeysOfGatewaysRotateAndNoCommandFails(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	exporting(ctx, t, c, "")
	owner, err := c.Owner(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	forwarder := 1 - owner
	write := initiator.Command{CDB: []byte{0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0}, Out: make([]byte, 512), Writes: true}
	good := func(session *initiator.Session, what string) {
		t.Helper()
		if response, err := session.Do(ctx, write); err != nil || response.Status != initiator.StatusGood {
			t.Errorf("%s: %v, %v", what, response, err)
		}
	}
	steady := login(ctx, t, c, 1, forwarder)
	becomes(ctx, t, steady, false)
	before := copied(ctx, t, c, forwarder, 1).Peers[uint32(owner+1)].GetOwnKeys()[0].GetId()
	for i := range 4 {
		if _, err := c.Control(ctx, "gateway", "rotate-keys"); err != nil {
			t.Fatal(err)
		}
		if err := netns.Until(ctx, func() error {
			good(steady, "a session from before the rotation")
			fresh, err := initiator.Login(ctx, initiator.Options{Portal: c.Portals(forwarder)[0], Target: cluster.Target,
				Initiator: cluster.Initiator + "2", ISID: [6]byte{0x80, 0, 0, 0, 0, byte(i)}})
			if err != nil {
				return err
			}
			defer fresh.Close()
			becomesOnce(ctx, t, fresh, write)
			state, err := c.CopyState(forwarder)
			if err == nil && state.Peers[uint32(owner+1)].GetOwnKeys()[0].GetId() == before {
				err = errors.New("the key is the former one")
			}
			if err == nil {
				before = state.Peers[uint32(owner+1)].GetOwnKeys()[0].GetId()
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// becomesOnce writes over a new session, whose first command may get unit attentions.
func becomesOnce(ctx context.Context, t *testing.T, session *initiator.Session, write initiator.Command) {
	t.Helper()
	for range 4 {
		response, err := session.Do(ctx, write)
		switch {
		case err == nil && response.Status == initiator.StatusGood:
			return
		case err == nil && response.Sense.Key == 0x06:
		default:
			t.Errorf("a session from after the rotation: %v, %v", response, err)
			return
		}
	}
	t.Error("a session from after the rotation: only unit attentions")
}
