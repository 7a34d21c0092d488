package main

import (
	"context"
	"net"
	"path/filepath"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/netns"
)

// bareEcho is the limit: a process that transfers as many bytes as a gateway, without a protocol. Its cost of more connections is
// the kernel's.
type bareEcho struct {
	process *netns.Process
	portal  string
}

func startEcho(ctx context.Context, b *harness.Bench) (*bareEcho, error) {
	e := &bareEcho{portal: "127.0.0.1:3271"}
	_, port, _ := net.SplitHostPort(e.portal)
	e.process = &netns.Process{Name: "bare-echo", Log: filepath.Join(b.Directory, "bare-echo.log"),
		Arguments: []string{filepath.Join(b.Client, "bare-echo"), "--port", port}}
	if err := e.process.Start(); err != nil {
		return e, err
	}
	if err := netns.UntilListens(ctx, e.process, e.portal); err != nil {
		return e, err
	}
	return e, harness.Pin(e.process.Pid(), targetCore)
}

func (e *bareEcho) stop() { _ = e.process.Kill() } // it ends in any case
