// Package netns is a small data centre in one process tree: network namespaces that bridges connect, processes in them, and
// faults of both. It runs in its own namespaces, so that nothing is left behind, and nothing outside is affected.
package netns

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// isolated tells the program that it already runs in its own namespaces, as tests/lib/tier.sh also does.
const isolated = "SLUICE_ISOLATED"

const commandTimeout = 20 * time.Second

// Isolate runs this program again with its own network, processes and mounts, and does not return here; in that second run it
// returns nil. The error states why this machine does not support it.
func Isolate() error {
	if os.Getenv(isolated) == "" {
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			return err
		}
		arguments := []string{"unshare"}
		if os.Getuid() != 0 {
			arguments = append(arguments, "--user", "--map-root-user")
		}
		arguments = append(arguments, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
		if text, err := exec.Command(unshare, append(arguments[1:], "true")...).CombinedOutput(); err != nil {
			return fmt.Errorf("no namespaces here: %s", strings.TrimSpace(string(text)))
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		arguments = append(append(arguments, self), os.Args[1:]...)
		return syscall.Exec(unshare, arguments, append(os.Environ(), isolated+"=1"))
	}
	// `ip netns` keeps names in /run/netns: these must not appear outside.
	for _, command := range []string{"mount -t tmpfs tmpfs /run", "ip link set lo up"} {
		if err := run(strings.Fields(command)...); err != nil {
			return err
		}
	}
	return nil
}

// OwnSharedMemory gives this program, once isolated, a separate /dev/shm: libfaketime leaves files there when its process is
// killed.
func OwnSharedMemory() error { return run("mount", "-t", "tmpfs", "tmpfs", "/dev/shm") }

func run(words ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}
