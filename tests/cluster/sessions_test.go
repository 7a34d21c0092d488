package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// login opens a session of a host, by number, to a gateway's portal on the red fabric.
func login(ctx context.Context, t *testing.T, c *cluster.Cluster, number, gateway int) *initiator.Session {
	t.Helper()
	session, err := c.Login(ctx, number, gateway)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// registered waits until the control plane has this number of sessions at a gateway.
func registered(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway, sessions int) {
	t.Helper()
	if err := netns.Until(ctx, func() error {
		shown, err := c.Control(ctx, "session", "list", "--gateway", cluster.GatewayName(gateway), "-o", "json")
		if found := strings.Count(string(shown), `"initiator"`); err == nil && found != sessions {
			err = fmt.Errorf("%d sessions at %s: %s", found, cluster.GatewayName(gateway), shown)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// paths returns the target's paths that gateways have applied, and all paths.
func paths(ctx context.Context, c *cluster.Cluster) (applied, all []string, err error) {
	shown, err := c.Control(ctx, "target", "get", "cluster", "-o", "json")
	if err != nil {
		return nil, nil, err
	}
	var target struct {
		Status struct {
			Paths []struct {
				Gateway string
				Applied bool
			}
		}
	}
	if err := json.Unmarshal(shown, &target); err != nil {
		return nil, nil, fmt.Errorf("%w in %s", err, shown)
	}
	for _, path := range target.Status.Paths {
		all = append(all, path.Gateway)
		if path.Applied {
			applied = append(applied, path.Gateway)
		}
	}
	return applied, all, nil
}

// exporting waits until two gateways export the target, both report its newest state as applied, and the one that is left is not
// among them. It returns the two.
func exporting(ctx context.Context, t *testing.T, c *cluster.Cluster, left string) []string {
	t.Helper()
	var applied, all []string
	if err := netns.Until(ctx, func() (err error) {
		applied, all, err = paths(ctx, c)
		if err == nil && (len(all) != 2 || len(applied) != 2 || slices.Contains(all, left)) {
			err = fmt.Errorf("%v have applied it of %v", applied, all)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// appliedBy waits until a gateway that joins the path set serves the target: logins before that are refused.
func appliedBy(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway int) {
	t.Helper()
	if err := netns.Until(ctx, func() error {
		applied, all, err := paths(ctx, c)
		if err == nil && !slices.Contains(applied, cluster.GatewayName(gateway)) {
			err = fmt.Errorf("%v have applied it of %v", applied, all)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// numberOf returns the number of a gateway, from 0.
func numberOf(gateway string) int {
	return slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return cluster.GatewayName(i) == gateway })
}

func leftByLogout(ctx context.Context, t *testing.T, session *initiator.Session) {
	t.Helper()
	select {
	case <-session.Over():
	case <-ctx.Done():
		t.Fatal("the session was not asked to leave")
	}
	if lost := session.Lost(); lost.Reason != initiator.LostLogout {
		t.Fatalf("the session ended otherwise than by a logout: %v", lost)
	}
}

// R9: sessions on a draining gateway are asked to leave it, but the only session of a host stays until it has another one.
func TestSessionsLeaveADrainingGatewayOnlyWhileAnotherOneStays(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 1, Replicas: 1, Paths: 2})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	before := exporting(ctx, t, c, "")
	drains, other := numberOf(before[0]), numberOf(before[1])
	twice, stays := login(ctx, t, c, 1, drains), login(ctx, t, c, 1, other)
	alone := login(ctx, t, c, 2, drains)
	registered(ctx, t, c, drains, 2)
	registered(ctx, t, c, other, 1)
	if err := c.Drain(ctx, drains); err != nil {
		t.Fatal(err)
	}
	leftByLogout(ctx, t, twice)
	if lost := alone.Lost(); lost != nil {
		t.Fatalf("the only session of a host ended: %v", lost)
	}
	third := 3 - drains - other
	appliedBy(ctx, t, c, third)
	joins := login(ctx, t, c, 2, third)
	leftByLogout(ctx, t, alone)
	for _, session := range []*initiator.Session{stays, joins} {
		if _, err := session.Do(ctx, initiator.Command{CDB: make([]byte, 6)}); err != nil { // TEST UNIT READY
			t.Errorf("a session that stays: %v", err)
		}
	}
	events, err := c.Control(ctx, "events")
	if err != nil {
		t.Fatal(err)
	}
	if found := strings.Count(string(events), "SessionRebalanced"); found != 2 {
		t.Errorf("%d sessions were said to be asked, both were:\n%s", found, events)
	}
	exporting(ctx, t, c, before[0])
}
