package isolation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

// takeLock opens a file and takes its lock, as a gateway does. Error: another process has it.
func takeLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return file, nil
}

func untilClosed(t *testing.T, what string, over <-chan struct{}) {
	t.Helper()
	select {
	case <-over:
	case <-soon(t).Done():
		t.Fatalf("the %s did not end", what)
	}
}

// untilUnlocked waits until no process has the lock of the file.
func untilUnlocked(t *testing.T, path string) {
	t.Helper()
	err := netns.Until(soon(t), func() error {
		file, err := takeLock(path)
		if err != nil {
			return err
		}
		return file.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// locksOf returns the number of locks of a file, without a call of its file system.
func locksOf(t *testing.T, file syscall.Stat_t) int {
	t.Helper()
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(locks), fmt.Sprintf(" %02x:%02x:%d ", unix.Major(file.Dev), unix.Minor(file.Dev), file.Ino))
}

// untilReleaseIsPrepared waits until the process has noticed that a call lasts long.
func untilReleaseIsPrepared(t *testing.T, process *netns.Process) {
	t.Helper()
	err := netns.Until(soon(t), func() error {
		if text := process.LogTail(1000); !strings.Contains(text, "a second process would release the descriptors") {
			return errors.New("not in its log: " + text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// blockedThreads returns the directories in /proc of the threads of the process that have not ended.
func blockedThreads(t *testing.T, process *netns.Process) (blocked []string) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", process.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(filepath.Join(thread, "stat"))
		if err != nil {
			continue // it has ended
		}
		if _, state, found := strings.Cut(string(text), ") "); found && state[0] != 'Z' {
			blocked = append(blocked, thread)
		}
	}
	return blocked
}

// untilRingsAreUnmapped waits until the memory that the blocked threads keep contains no ring.
func untilRingsAreUnmapped(t *testing.T, process *netns.Process) {
	t.Helper()
	err := netns.Until(soon(t), func() error {
		for _, thread := range blockedThreads(t, process) {
			if maps, err := os.ReadFile(filepath.Join(thread, "maps")); err == nil && bytes.Contains(maps, []byte("[io_uring]")) {
				return errors.New("a ring is mapped")
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A gateway ends while a disk hangs, so some of its threads cannot end. Another gateway must serve the LUNs of all other disks.
func TestAGatewayThatEndsWhileADiskHangsReleasesWhatTheDiskDoesNotUse(t *testing.T) {
	signal := func(number syscall.Signal) func(*testing.T, *netns.Process) {
		return func(t *testing.T, process *netns.Process) {
			if err := process.Signal(number); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, end := range map[string]func(*testing.T, *netns.Process){
		"killed":     signal(syscall.SIGKILL),
		"terminated": signal(syscall.SIGTERM),
		"by its watchdog": func(t *testing.T, process *netns.Process) {
			undo, err := process.HangThread("reactor-0")
			if err != nil {
				t.Skip("no ptrace here: ", err)
			}
			t.Cleanup(func() { _ = undo() }) // the thread has ended
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, process := hangingDisk(t, "")
			directory := filepath.Dir(process.Log)
			hung, healthy := filepath.Join(directory, "disk", "image"), filepath.Join(directory, "image")
			hanging, other := logIn(t, "hanging"), logIn(t, "other")
			useHealthyLUNs(t, other)
			var hungFile syscall.Stat_t
			if err := syscall.Stat(hung, &hungFile); err != nil {
				t.Fatal(err)
			}
			d.Hang()
			begin(t, hanging, hangingCommands(8, 4, 2))
			for d.Waiting() == 0 {
				runtime.Gosched()
			}
			untilReleaseIsPrepared(t, process)

			end(t, process)
			for _, session := range []*initiator.Session{hanging, other} {
				untilClosed(t, "session", session.Over())
				if lost := session.Lost(); lost.Reason == initiator.LostSilent {
					t.Error("a connection stayed open: ", lost)
				}
			}
			untilUnlocked(t, healthy)
			untilRingsAreUnmapped(t, process)
			if locks := locksOf(t, hungFile); locks != 1 {
				t.Errorf("%d locks of the file on the hanging disk", locks)
			}
			serveOnlyHealthyLUN(t, directory, healthy)
			if len(blockedThreads(t, process)) == 0 {
				t.Error("no thread is blocked, so this test shows nothing")
			}

			d.Resume()
			untilClosed(t, "process", process.Done())
			untilUnlocked(t, hung)
		})
	}
}

// serveOnlyHealthyLUN starts another gateway on the same port, and uses the file.
func serveOnlyHealthyLUN(t *testing.T, directory, path string) {
	t.Helper()
	process, err := netns.Standalone{Program: os.Getenv("SLUICE_GATEWAY"), Name: "successor", Directory: directory, Listen: []string{portal},
		Target: iqn, LUNs: []string{"backend: memory, size: 16MiB", "backend: file, path: " + path, "backend: memory, size: 16MiB"}}.Process()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(process.LogTail(20))
		}
	})
	if err := netns.UntilListens(soon(t), process, portal); err != nil {
		t.Fatal(err)
	}
	useHealthyLUNs(t, logIn(t, "successor"))
}
