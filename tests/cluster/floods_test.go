package cluster_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
)

// forwardingRoom is the maximum number of connections in their login at a forwarding port
// (limits::kMaxForwardingUnauthenticated).
const forwardingRoom = 1024

// flood opens more silent connections to the forwarding port of a gateway than it admits. They are closed with the test.
func flood(ctx context.Context, t *testing.T, c *cluster.Cluster, gateway int) {
	t.Helper()
	address := fmt.Sprintf("%s:3261", c.Network.Address(cluster.GatewayName(gateway), cluster.Internal))
	var dialer net.Dialer
	for range forwardingRoom + 16 {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
}

func TestAFloodOfTheForwardingPortKeepsForwardingAlive(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	exporting(ctx, t, c, "")
	for gateway := range 2 {
		flood(ctx, t, c, gateway)
	}
	write := initiator.Command{CDB: []byte{0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0}, Out: make([]byte, 512), Writes: true}
	for gateway := range 2 { // one of them owns the volume; the other one forwards over a new connection
		session := login(ctx, t, c, 1, gateway)
		if _, err := session.Good(ctx, write); err != nil {
			t.Errorf("a write through %s: %v", cluster.GatewayName(gateway), err)
		}
	}
}
