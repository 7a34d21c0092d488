package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// findings returns the present findings as `id kind/name`, each object and each consequence on its own.
func findings(ctx context.Context, c *cluster.Cluster) ([]string, error) {
	response, err := pb.NewFindingServiceClient(c.Connection()).ListFindings(ctx, &pb.ListFindingsRequest{EachObject: true,
		MinSeverity: pb.FindingSeverity_FINDING_SEVERITY_WARNING})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, f := range response.GetFindings() {
		all = append(all, fmt.Sprintf("%s %s/%s", f.GetId(), f.GetObject().GetKind(), f.GetObject().GetName()))
	}
	return all, nil
}

// A firewall between one gateway and the others: its stream is well, but its peers' paths to its volumes would fail. What it owns
// moves, and doctor names it until the firewall is gone.
func TestAGatewayThatItsPeersDoNotReachOwnsNothingAndIsAFinding(t *testing.T) {
	const cutOff = 0
	c, ctx := start(t, cluster.Options{Gateways: 3, Volumes: 2, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Bring(ctx, 0, cutOff); err != nil {
		t.Fatal(err)
	}
	name := cluster.GatewayName(cutOff)
	finding := "GatewayNotServing Gateway/" + name
	if found, err := findings(ctx, c); err != nil || slices.Contains(found, finding) {
		t.Fatalf("before the fault: %v, %v", found, err)
	}
	var undo []netns.Undo
	for _, other := range []int{1, 2} {
		heal, err := c.Network.Partition(cluster.GatewayName(other), name, cluster.Internal)
		if err != nil {
			t.Fatal(err)
		}
		undo = append(undo, heal)
	}
	if err := netns.Until(ctx, func() error {
		found, err := findings(ctx, c)
		owner, ownerErr := c.Owner(ctx, 0)
		if err != nil || ownerErr != nil || !slices.Contains(found, finding) || owner == cutOff {
			return fmt.Errorf("findings %v (%w), owner %d (%w)", found, err, owner, ownerErr)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Control(ctx, "volume", "move", cluster.VolumeName(0), "--to", name, "--wait", "--timeout", "30s"); err == nil {
		t.Error("a volume was moved to it")
	}
	for _, heal := range undo {
		if err := heal(); err != nil {
			t.Fatal(err)
		}
	}
	if err := netns.Until(ctx, func() error {
		found, err := findings(ctx, c)
		if err != nil || slices.Contains(found, finding) {
			return fmt.Errorf("after the repair: %v (%w)", found, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Bring(ctx, 0, cutOff); err != nil {
		t.Errorf("the healed gateway gets no volume: %v", err)
	}
}
