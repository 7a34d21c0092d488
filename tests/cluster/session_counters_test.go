package cluster_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// The READ and WRITE commands and the bytes of `session list` are the I/O that the host performed. The host is idle afterwards: the
// counters of its last commands must arrive without further I/O.
func TestTheCountersOfASessionAreTheIOThatItsHostPerformed(t *testing.T) {
	c, ctx := start(t, cluster.Options{Gateways: 1, Volumes: 1, Replicas: 1, Paths: 1})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	session := login(ctx, t, c, 1, 0)
	registered(ctx, t, c, 0, 1)
	// The first command ends with a unit attention, and would count twice.
	if _, err := session.Good(ctx, initiator.TestUnitReady(0)); err != nil {
		t.Fatal(err)
	}
	const reads, readBlocks, writes, writeBlocks, blockSize = 7, 16, 5, 8, 512
	for i := range writes {
		if _, err := session.Good(ctx, initiator.Write(0, uint64(i*writeBlocks), make([]byte, writeBlocks*blockSize), blockSize)); err != nil {
			t.Fatal(err)
		}
	}
	for range reads {
		if _, err := session.Good(ctx, initiator.Read(0, 0, readBlocks, blockSize)); err != nil {
			t.Fatal(err)
		}
	}
	type counters struct{ Reads, Writes, ReadBytes, WriteBytes json.Number }
	exactly := func(n int) json.Number { return json.Number(strconv.Itoa(n)) }
	want := counters{exactly(reads), exactly(writes), exactly(reads * readBlocks * blockSize), exactly(writes * writeBlocks * blockSize)}
	if err := netns.Until(ctx, func() error {
		shown, err := c.Control(ctx, "session", "list", "-o", "json")
		if err != nil {
			return err
		}
		var list struct {
			Items []struct{ Status struct{ Counters counters } }
		}
		if err := json.Unmarshal(shown, &list); err != nil {
			return fmt.Errorf("%w in %s", err, shown)
		}
		if len(list.Items) != 1 || list.Items[0].Status.Counters != want {
			return fmt.Errorf("not %+v: %s", want, shown)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
