package cluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// mapped maps the first volume again, read-only or not.
func mapped(ctx context.Context, t *testing.T, c *cluster.Cluster, readOnly bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "target.yaml")
	text := fmt.Sprintf("apiVersion: sluice.dev/v1\nkind: Target\nmeta: {name: cluster}\nspec: {iqn: %q, gatewayPool: default, "+
		"paths: 2, luns: [{id: 0, volume: %s, readOnly: %v}], hosts: [host-1]}\n", cluster.Target, cluster.VolumeName(0), readOnly)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Control(ctx, "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
	exporting(ctx, t, c, "")
}

// becomes writes a block until the answer is the expected one: good, or DATA PROTECT, WRITE PROTECTED (07/27/00).
func becomes(ctx context.Context, t *testing.T, session *initiator.Session, readOnly bool) {
	t.Helper()
	write := initiator.Command{CDB: []byte{0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0}, Out: make([]byte, 512), Writes: true}
	if err := netns.Until(ctx, func() error {
		response, err := session.Do(ctx, write)
		refused := response.Sense == initiator.Sense{Key: 0x07, Code: 0x27}
		if err == nil && (readOnly != refused || !readOnly && response.Status != initiator.StatusGood) {
			err = fmt.Errorf("a write is answered with %v", response)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestALunThatIsReadOnlyIsSoThroughEveryGateway(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 2, Volumes: 1, Replicas: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	exporting(ctx, t, c, "")
	sessions := []*initiator.Session{login(ctx, t, c, 1, 0), login(ctx, t, c, 1, 1)}
	for _, readOnly := range []bool{false, true, false} {
		mapped(ctx, t, c, readOnly)
		for _, session := range sessions {
			becomes(ctx, t, session, readOnly)
		}
	}
}
