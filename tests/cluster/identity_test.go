package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// twin returns a second process of a gateway, not started: with separate admin socket, log and metrics; in another node's
// namespace if one is given; with another state directory if one is given.
func twin(t *testing.T, of *netns.Process, node, state string) *netns.Process {
	t.Helper()
	directory := t.TempDir()
	words := slices.Clone(of.Arguments)
	for i, word := range words[:len(words)-1] {
		switch {
		case word == "--admin-socket":
			words[i+1] = filepath.Join(directory, "socket")
		case word == "--state-dir" && state != "":
			words[i+1] = state
		}
	}
	second := &netns.Process{Name: of.Name + " again", Node: node, Arguments: words, Log: filepath.Join(directory, "log")}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("--- %s\n%s", second.Name, second.LogTail(30))
		}
		if err := second.Kill(); err != nil {
			t.Error(err)
		}
	})
	return second
}

// ends waits for the end of a process and checks its status and its last output.
func ends(ctx context.Context, t *testing.T, p *netns.Process, status string, words ...string) {
	t.Helper()
	select {
	case <-p.Done():
	case <-ctx.Done():
		t.Fatalf("%s has not ended", p.Name)
	}
	output := strings.Join(p.Unexpected(), "\n")
	for _, word := range append(words, status) {
		if !strings.Contains(output, word) {
			t.Errorf("%s ended without %q: %s", p.Name, word, output)
		}
	}
}

// refusedFor waits until a gateway's condition Refused has a reason.
func refusedFor(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway, reason string) {
	t.Helper()
	if err := netns.Until(ctx, func() error {
		shown, err := c.Control(ctx, "gateway", "get", gateway, "-o", "json")
		if err != nil {
			return err
		}
		var object struct {
			Status struct {
				Conditions []struct{ Type, Status, Reason string }
			}
		}
		if err := json.Unmarshal(shown, &object); err != nil {
			return err
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == "Refused" && condition.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("no condition Refused for %s: %s", reason, shown)
	}); err != nil {
		t.Fatal(err)
	}
}

func logsIn(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway int) *initiator.Session {
	t.Helper()
	var session *initiator.Session
	if err := netns.Until(ctx, func() (err error) {
		session, err = c.Login(ctx, 1, gateway)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func TestASecondProcessOnAStateDirectoryInUseEndsAtOnce(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 1, Volumes: 1, Replicas: 1})
	session := logsIn(ctx, t, c, 0)
	reads(ctx, t, session, 0) // it waits for the owner
	writes(ctx, t, session, 0, 'a')
	second := twin(t, c.Gateways[0], cluster.GatewayName(0), "")
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	ends(ctx, t, second, "exit status 3", fmt.Sprintf("in use by process %d", c.Gateways[0].Pid()))
	if got := reads(ctx, t, session, 0); got != 'a' {
		t.Errorf("the first process serves %q", got)
	}
}

func TestASecondProcessThatCannotListenDoesNotBecomeTheGateway(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 1, Volumes: 1, Replicas: 1})
	session := logsIn(ctx, t, c, 0)
	reads(ctx, t, session, 0) // it waits for the owner
	writes(ctx, t, session, 0, 'a')
	second := twin(t, c.Gateways[0], cluster.GatewayName(0), t.TempDir())
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	refusedFor(ctx, t, c, cluster.GatewayName(0), "PortsInUse")
	if got := reads(ctx, t, session, 0); got != 'a' {
		t.Errorf("the first process serves %q", got)
	}
	if err := c.Gateways[0].Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	again := logsIn(ctx, t, c, 0) // the ports are free, so the second process becomes the gateway
	if got := reads(ctx, t, again, 0); got != 'a' {
		t.Errorf("the second process serves %q", got)
	}
}

func TestAReplacedProcessEndsAndClosesItsPorts(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	session := logsIn(ctx, t, c, 0)
	reads(ctx, t, session, 0) // it waits for the owner
	writes(ctx, t, session, 0, 'a')
	// Another machine has the same addresses, so the second process can listen there.
	for _, portal := range append(c.Portals(0), c.Network.Address(cluster.GatewayName(0), cluster.Internal)+":0") {
		address := portal[:strings.LastIndexByte(portal, ':')] + "/32"
		if out, err := exec.CommandContext(ctx, "ip", "-n", cluster.GatewayName(1), "address", "add", address, "dev", "lo").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	second := twin(t, c.Gateways[0], cluster.GatewayName(1), t.TempDir())
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	ends(ctx, t, c.Gateways[0], "exit status 4", "another process has replaced this one")
}

// The data directory is empty, and objects of the same names are created.
func TestAGatewayKeepsServingWhenAControlPlaneOfAnotherSystemTakesTheAddress(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 1, Volumes: 1, Replicas: 1})
	session := logsIn(ctx, t, c, 0)
	reads(ctx, t, session, 0) // it waits for the owner
	writes(ctx, t, session, 0, 'a')
	replica := c.Replicas[0]
	if err := replica.Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	data := slices.Index(replica.Arguments, "--data-dir") + 1
	first := replica.Arguments[data]
	replica.Arguments[data] = t.TempDir()
	if err := replica.Start(); err != nil {
		t.Fatal(err)
	}
	if err := netns.Until(ctx, func() error { return c.Grow(ctx, 1) }); err != nil {
		t.Fatal(err)
	}
	refusedFor(ctx, t, c, cluster.GatewayName(0), "AnotherSystem")
	if got := reads(ctx, t, session, 0); got != 'a' {
		t.Errorf("the gateway serves %q", got)
	}
	again := logsIn(ctx, t, c, 0)
	if got := reads(ctx, t, again, 0); got != 'a' {
		t.Errorf("to a new session the gateway serves %q", got)
	}
	status, err := c.Control(ctx, "status", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var shown struct {
		ControlPlane struct{ SystemID string } `json:"controlPlane"`
	}
	if err := json.Unmarshal(status, &shown); err != nil || shown.ControlPlane.SystemID == "" {
		t.Fatalf("%v: %s", err, status)
	}
	gateway := c.Gateways[0].Arguments
	socket := gateway[slices.Index(gateway, "--admin-socket")+1]
	accept := exec.CommandContext(ctx, gateway[0], "accept-system", shown.ControlPlane.SystemID, "--socket", socket)
	if out, err := accept.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	refusedFor(ctx, t, c, cluster.GatewayName(0), "Admitted")
	// A control plane of the first system is refused from now on.
	if err := replica.Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	replica.Arguments[data] = first
	if err := replica.Start(); err != nil {
		t.Fatal(err)
	}
	refusedFor(ctx, t, c, cluster.GatewayName(0), "AnotherSystem")
}
