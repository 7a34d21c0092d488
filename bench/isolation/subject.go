package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"sluice.dev/sluice/tests/netns"
)

const (
	iqn      = "iqn.2026-11.dev.sluice:isolation"
	port     = 3260
	ownCPU   = "0"              // of the target; `make bench-isolation` gives the others to this program
	patience = 10 * time.Second // for the start of a target, and for one call of tgtadm
)

var portal = fmt.Sprintf("127.0.0.1:%d", port)

// subject is a target that serves two files.
type subject struct {
	name string
	// luns are the numbers of the LUNs: of the device that stalls, and of the healthy one.
	luns  [2]uint16
	start func(ctx context.Context, s settings, directory string, files [2]string) (*netns.Process, error)
}

// tgt has a LUN 0 of its own.
var subjects = []subject{{"sluice", [2]uint16{0, 1}, startGateway}, {"tgt", [2]uint16{1, 2}, startTgt}}

// sizes of the files, in MiB: of the device that stalls, so large that the page cache has little of it, and of the healthy one, which
// it has.
var sizes = [2]uint64{16 << 10, 64}

// pinned lets the process run on one CPU.
func pinned(p *netns.Process) *netns.Process {
	p.Arguments = append([]string{"taskset", "-c", ownCPU}, p.Arguments...)
	return p
}

func startGateway(ctx context.Context, s settings, directory string, files [2]string) (*netns.Process, error) {
	setup := netns.Standalone{Program: s.gateway, Name: "gateway", Directory: directory, Listen: []string{portal}, Target: iqn}
	for i, file := range files { // as tgt, which acknowledges a write that is in the page cache
		setup.LUNs = append(setup.LUNs, fmt.Sprintf("backend: file, path: %s, size: %dMiB, write-cache: on", file, sizes[i]))
	}
	p, err := setup.Process()
	if err == nil {
		err = pinned(p).Start()
	}
	if err == nil {
		err = netns.UntilListens(ctx, p, portal)
	}
	return p, err
}

func startTgt(ctx context.Context, _ settings, directory string, files [2]string) (*netns.Process, error) {
	control := strconv.Itoa(os.Getpid() % 32768) // names its control socket; the most it takes
	if err := os.MkdirAll("/run/tgtd", 0o700); err != nil {
		return nil, err
	}
	p := pinned(&netns.Process{Name: "tgtd", Log: filepath.Join(directory, "tgtd.log"),
		Arguments: []string{"tgtd", "-f", "-C", control, "--iscsi", "portal=" + portal}})
	if err := p.Start(); err != nil {
		return p, err
	}
	if err := netns.UntilListens(ctx, p, portal); err != nil {
		return p, err
	}
	calls := [][]string{{"target", "new", "--tid", "1", "-T", iqn}}
	for i, file := range files {
		calls = append(calls, []string{"logicalunit", "new", "--tid", "1", "--lun", strconv.Itoa(i + 1), "--bstype", "rdwr", "-b", file})
	}
	calls = append(calls, []string{"target", "bind", "--tid", "1", "-I", "ALL"})
	for _, call := range calls {
		arguments := append([]string{"-C", control, "--lld", "iscsi", "--mode", call[0], "--op", call[1]}, call[2:]...)
		limited, cancel := context.WithTimeout(ctx, patience)
		text, err := exec.CommandContext(limited, "tgtadm", arguments...).CombinedOutput()
		cancel()
		if err != nil {
			return p, fmt.Errorf("tgtadm %v: %w: %s", call, err, text)
		}
	}
	return p, nil
}

// makeFiles creates the files: the first one sparse, the second one without holes.
func makeFiles(files [2]string) error {
	return errors.Join(os.WriteFile(files[0], nil, 0o600), os.Truncate(files[0], int64(sizes[0]<<20)),
		os.WriteFile(files[1], make([]byte, sizes[1]<<20), 0o600))
}
