// Package world is a small data centre in one process tree: network namespaces joined by bridges, processes in them,
// and everything that can go wrong between them. It lives in namespaces of its own, so that nothing is left behind
// whatever happens, and nothing outside is touched.
package world

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// isolated tells the program that it runs in namespaces of its own already, as tests/lib/tier.sh does.
const isolated = "SLUICE_ISOLATED"

const commandTimeout = 20 * time.Second

// Isolate runs this program again with its own network, processes and mounts, as its last act here; in that run it
// returns nil. The error says why it can't be done on this machine.
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
	// `ip netns` keeps names in /run/netns: ours are nobody else's business.
	for _, command := range []string{"mount -t tmpfs tmpfs /run", "ip link set lo up"} {
		if err := run(strings.Fields(command)...); err != nil {
			return err
		}
	}
	return nil
}

// OwnSharedMemory gives this program, once isolated, a /dev/shm of its own: libfaketime leaves files there when what it is
// loaded into is killed.
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
