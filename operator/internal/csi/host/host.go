// Package host runs commands and reads files in the machine's namespaces, from inside a container. It uses the machine's own
// iscsiadm and multipath, because they must match its daemons.
package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Host is the machine.
type Host interface {
	// Run runs a command until it ends, and returns its output. If the command failed, the error is an *ExitError.
	Run(ctx context.Context, command Command) (string, error)
	// Do calls a function in the machine's namespaces: paths in it are the machine's.
	Do(call func() error) error
}

// Command is a command line.
type Command struct {
	Name      string
	Arguments []string
	// Secret has the indices in Arguments that are not logged.
	Secret []int
}

// New returns a command line.
func New(name string, arguments ...string) Command { return Command{Name: name, Arguments: arguments} }

// String returns the command line as it may be logged.
func (c Command) String() string {
	shown := append([]string{c.Name}, c.Arguments...)
	for _, i := range c.Secret {
		shown[1+i] = "***"
	}
	return strings.Join(shown, " ")
}

// ExitError reports a command that failed.
type ExitError struct {
	Command string
	// Status with which it ended; -1: it was killed, or the time was over.
	Status int
	// Said is the end of its output.
	Said string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("`%s` ended with status %d: %s", e.Command, e.Status, e.Said)
}

// Status returns the exit status of a failed command, -1 for any other error, 0 for none.
func Status(err error) int {
	var failed *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		return failed.Status
	}
	return -1
}

// Bounds of a command.
const (
	// patience bounds the duration of a command, regardless of its caller, so that a command that hangs in the kernel does not
	// block a call permanently.
	patience = 2 * time.Minute
	// outputWait is the time to wait for the output of a killed command.
	outputWait = time.Second
	maxOutput  = 2000
)

// Machine is the real machine.
type Machine struct {
	// Root is the machine's file system as seen in the container; `/`: this process runs on the machine itself.
	Root string
}

// namespaces to enter: mounts; the network, because iscsid and multipathd listen on abstract sockets; IPC, because device-mapper
// waits for udev on a semaphore.
var namespaces = []struct {
	name string
	flag int
}{{"ipc", unix.CLONE_NEWIPC}, {"net", unix.CLONE_NEWNET}, {"mnt", unix.CLONE_NEWNS}}

// Check reports whether the machine is accessible.
func (m Machine) Check() error {
	return m.Do(func() error {
		if _, err := os.Stat("/proc/self"); err != nil {
			return fmt.Errorf("the machine's namespaces: %w", err)
		}
		return nil
	})
}

// Do implements host.Host. The thread that enters the namespaces ends afterwards, so nothing else runs on it.
func (m Machine) Do(call func() error) error {
	if m.Root == "/" {
		return call()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		if err := m.enterMountNamespace(); err != nil {
			done <- err
			return
		}
		done <- call()
	}()
	return <-done
}

func (m Machine) enterMountNamespace() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // threads share their root, which prevents entering mount namespaces
		return fmt.Errorf("unshare: %w", err)
	}
	var files []int
	defer func() {
		for _, file := range files {
			_ = unix.Close(file)
		}
	}()
	for _, namespace := range namespaces {
		path := filepath.Join(m.Root, "proc/1/ns", namespace.name)
		file, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w (the machine's / has to be mounted at --host-root, and the container be privileged)", path, err)
		}
		files = append(files, file)
	}
	for i, namespace := range namespaces {
		if err := unix.Setns(files[i], namespace.flag); err != nil {
			return fmt.Errorf("enter the machine's %s namespace: %w", namespace.name, err)
		}
	}
	return nil
}

const searched = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Run implements Host.
func (m Machine) Run(ctx context.Context, command Command) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var output bytes.Buffer
	begun := time.Now()
	err := m.Do(func() error {
		// env searches the program on the machine, not in the container.
		process := exec.CommandContext(ctx, "/usr/bin/env", append([]string{command.Name}, command.Arguments...)...)
		process.Env = []string{searched, "LC_ALL=C"}
		process.Dir = "/"
		process.Stdout, process.Stderr = &output, &output
		process.WaitDelay = outputWait
		return process.Run()
	})
	slog.DebugContext(ctx, "ran", "command", command.String(), "took", time.Since(begun).Round(time.Millisecond), "problem", err)
	if err == nil {
		return output.String(), nil
	}
	failed := &ExitError{Command: command.String(), Status: -1, Said: err.Error()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		failed.Status = exit.ExitCode()
	}
	if text := strings.TrimSpace(output.String()); text != "" {
		failed.Said = text[max(0, len(text)-maxOutput):]
	}
	if ctx.Err() != nil {
		failed.Said = "not done in time; " + failed.Said
	}
	return output.String(), failed
}
