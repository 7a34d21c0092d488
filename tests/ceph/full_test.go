package ceph_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
)

// If a pool is above its threshold, hosts of its volumes get a unit attention (SBC-4 §4.7.3.7.2), administrators an event and a
// condition, and writes continue.
func TestANearlyFullPoolIsReportedToHostsAndToAdministrators(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 1, Volumes: 1, Ceph: &cluster.Ceph{Manager: true, DiskMiB: 2048}})
	spec, err := c.CephPool("rbd", "")
	if err != nil {
		t.Fatal(err)
	}
	create(ctx, t, c, cluster.PoolName, spec+", warnPercent: 5")
	shown := func(words string) error {
		if output := control(ctx, t, c, "pool", "get", cluster.PoolName, "-o", "json"); !strings.Contains(output, words) {
			return fmt.Errorf("nothing is said of %q: %s", words, output)
		}
		return nil
	}
	until(ctx, t, func() error { return shown("capacityBytes") })
	session := login(ctx, t, c, 1, 0)
	writes(ctx, t, session, 0, 1)
	if shown("more than 5% are used") == nil {
		t.Fatal("it counts as nearly full before it is")
	}

	file := filepath.Join(c.Directory, "content")
	if err := os.WriteFile(file, bytes.Repeat([]byte{0xa5}, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		rados(ctx, t, c, fmt.Sprintf("rados -p rbd put content-%d %s", i, file))
	}
	thresholdReached := initiator.Sense{Key: initiator.SenseUnitAttention, Code: 0x38, Qualifier: 0x07}
	until(ctx, t, func() error {
		response, err := session.Do(ctx, initiator.Write(0, 0, content(2), blockSize))
		if err == nil && response.Sense != thresholdReached {
			err = fmt.Errorf("the host got %v", response)
		}
		return err
	})
	writes(ctx, t, session, 0, 3)
	reads(ctx, t, session, 0, 3)
	until(ctx, t, func() error { return shown("more than 5% are used") })
	if output := control(ctx, t, c, "events"); !strings.Contains(output, "NearlyFull") {
		t.Errorf("no event tells of it:\n%s", output)
	}
}
