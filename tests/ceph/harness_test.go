// Package ceph_test runs a complete Sluice on a real Ceph: volumes that any gateway can own, and failures of gateways and of
// Ceph.
package ceph_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	blockSize = 512
	patience  = 100 * time.Second // of a whole test; a longer one counts as hanging
)

func TestMain(m *testing.M) {
	if _, err := exec.LookPath("ceph-osd"); err != nil {
		fmt.Println("SKIP a cluster over Ceph: it is not installed:", err)
		return
	}
	if err := netns.Isolate(); err != nil {
		fmt.Println("SKIP a cluster over Ceph:", err)
		return
	}
	os.Exit(m.Run())
}

// start starts Ceph and a cluster on it, and waits until all volumes are served.
func start(t *testing.T, options cluster.Options) (*cluster.Cluster, context.Context) {
	t.Helper()
	root, _ := filepath.Abs("../..") // the working directory is there
	options.Programs = filepath.Join(root, "build", "bin")
	for _, program := range []string{"sluice-controlplane", "sluice-gateway"} {
		if _, err := os.Stat(filepath.Join(options.Programs, program)); err != nil {
			t.Skip("not built: ", err)
		}
	}
	if options.Ceph == nil {
		options.Ceph = &cluster.Ceph{}
	}
	options.Ceph.Script = filepath.Join(root, "tests", "lib", "mini-ceph")
	options.Replicas = 1
	directory, err := os.MkdirTemp("", "sluice") // short, because Ceph has sockets in it
	if err != nil {
		t.Fatal(err)
	}
	options.Directory = directory
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c, err := cluster.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs(30))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := os.RemoveAll(directory); err != nil {
			t.Error(err)
		}
	})
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return c, ctx
}

func control(ctx context.Context, t *testing.T, c *cluster.Cluster, words ...string) string {
	t.Helper()
	output, err := c.Control(ctx, words...)
	if err != nil {
		t.Fatalf("sluicectl %s: %v", strings.Join(words, " "), err)
	}
	return string(output)
}

// rados runs one of Ceph's programs, for example `rbd ls pool`.
func rados(ctx context.Context, t *testing.T, c *cluster.Cluster, words string) string {
	t.Helper()
	output, err := c.Rados(ctx, strings.Fields(words)...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func ownerOf(ctx context.Context, t *testing.T, c *cluster.Cluster, volume int) int {
	t.Helper()
	owner, err := c.Owner(ctx, volume)
	if err != nil {
		t.Fatal(err)
	}
	return owner
}

// until waits until a condition holds.
func until(ctx context.Context, t *testing.T, condition func() error) {
	t.Helper()
	if err := netns.Until(ctx, condition); err != nil {
		t.Fatal(err)
	}
}

// writers write ascending numbers into blocks of each LUN over all paths, and record what was acknowledged.
type writers struct {
	t         *testing.T
	c         *cluster.Cluster
	multipath *initiator.Multipath
	luns      []uint16
	stop      context.CancelFunc
	runs      sync.WaitGroup

	mu sync.Mutex
	// acknowledged has the last acknowledged number, by LUN and block; doubtful has later ones that may have been written.
	acknowledged map[place]uint64
	doubtful     map[place][]uint64
	refused      []string
	longest      time.Duration
	changed      chan struct{}
}

type place struct {
	lun   uint16
	block uint64
}

const writtenBlocks = 4 // of each LUN

// write starts to write to all volumes.
func write(ctx context.Context, t *testing.T, c *cluster.Cluster) *writers {
	t.Helper()
	w := &writers{t: t, c: c, acknowledged: map[place]uint64{}, doubtful: map[place][]uint64{}, changed: make(chan struct{})}
	for i := range c.Volumes {
		w.luns = append(w.luns, uint16(i))
	}
	w.multipath = initiator.Open(initiator.Config{Portals: c.AllPortals(), Target: cluster.Target, Initiator: cluster.Initiator + "1", LUNs: w.luns})
	t.Cleanup(w.multipath.Close)
	if err := w.multipath.WaitPaths(ctx, len(c.AllPortals())); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	w.stop = stop
	for _, lun := range w.luns {
		w.runs.Go(func() { w.run(running, ctx, lun) })
	}
	w.more(ctx, 1)
	return w
}

// run ends between two writes; each write has until ctx ends.
func (w *writers) run(running, ctx context.Context, lun uint16) {
	for number := uint64(1); running.Err() == nil; number++ {
		at := place{lun, number % writtenBlocks}
		began := time.Now()
		result := w.multipath.Run(ctx, initiator.Write(lun, at.block, content(number), blockSize))
		w.mu.Lock()
		w.longest = max(w.longest, time.Since(began))
		switch {
		case result.Outcome == initiator.OK && result.Response.Status == initiator.StatusGood:
			w.acknowledged[at], w.doubtful[at] = number, nil
		case result.Outcome == initiator.OK:
			w.refused = append(w.refused, fmt.Sprintf("LUN %d: %s", lun, result.Response))
		case result.Outcome == initiator.Unknown:
			w.doubtful[at] = append(w.doubtful[at], number)
		}
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
}

func content(number uint64) []byte {
	block := make([]byte, blockSize)
	for at := 0; at < blockSize; at += 8 {
		binary.BigEndian.PutUint64(block[at:], number)
	}
	return block
}

// more waits until every LUN has this number of further acknowledged writes.
func (w *writers) more(ctx context.Context, writes uint64) {
	w.t.Helper()
	all := make([]int, len(w.luns))
	for i := range all {
		all[i] = i
	}
	w.moreOf(ctx, all, writes)
}

// moreOf waits until these LUNs have this number of further acknowledged writes.
func (w *writers) moreOf(ctx context.Context, luns []int, writes uint64) {
	w.t.Helper()
	before := w.progress()
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		now, done := w.progress(), true
		for _, i := range luns {
			done = done && now[i] >= before[i]+writes
		}
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			w.t.Fatalf("writes stand still: %v before, %v now", before, now)
		}
	}
}

func (w *writers) progress() []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := make([]uint64, len(w.luns))
	for at, number := range w.acknowledged {
		last[at.lun] = max(last[at.lun], number)
	}
	return last
}

// end stops them, and reads their blocks over every path: no acknowledged write may be missing, and nothing may be stale.
func (w *writers) end(ctx context.Context) {
	w.t.Helper()
	w.stop()
	w.runs.Wait()
	for _, refused := range w.refused {
		w.t.Error(refused)
	}
	for at, number := range w.acknowledged {
		result := w.multipath.Run(ctx, initiator.Read(at.lun, at.block, 1, blockSize))
		if result.Outcome != initiator.OK || result.Response.Status != initiator.StatusGood {
			w.t.Errorf("LUN %d block %d can't be read: %v %s %v", at.lun, at.block, result.Outcome, result.Response, result.Err)
			continue
		}
		found := binary.BigEndian.Uint64(result.Response.Data)
		good := found == number
		for _, doubtful := range w.doubtful[at] {
			good = good || found == doubtful
		}
		if !good || !bytes.Equal(result.Response.Data, content(found)) {
			w.t.Errorf("LUN %d block %d holds %d; %d was acknowledged last", at.lun, at.block, found, number)
		}
	}
	w.t.Logf("the longest write took %v", w.longest.Round(time.Millisecond))
}
